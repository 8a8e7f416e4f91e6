package report

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// How much of a value is shown to people.
const (
	MaxElems      = 8
	maxShownBytes = 60
)

// ByteSize writes bytes in the units of disks and files.
func ByteSize(n int64) string { return scaled(n, " KMGTPE") + "B" }

// Parameters writes a number of weights as the names of models do: 16.4M.
func Parameters(n int64) string { return scaled(n, "KMBT") }

// scaled writes n with one decimal and the unit it takes, thousands at a time; a
// space before the units stands before each.
func scaled(n int64, units string) string {
	sep := ""
	if units[0] == ' ' {
		sep, units = " ", units[1:]
	}
	if n < 1000 {
		return strconv.FormatInt(n, 10) + sep
	}
	x, u := float64(n)/1000, 0
	for ; x >= 999.95 && u < len(units)-1; x /= 1000 {
		u++
	}
	return fmt.Sprintf("%.1f%s%c", x, sep, units[u])
}

// BinarySize writes bytes in the units of memory.
func BinarySize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	x, u := float64(n), 0
	for ; x >= 1024 && u < len(units)-1; x /= 1024 {
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}

// ShortScalar quotes strings: they may hold anything.
func ShortScalar(v any) string {
	s, ok := v.(string)
	if !ok {
		return fmt.Sprint(v)
	}
	if len(s) <= maxShownBytes {
		return strconv.Quote(s)
	}
	cut := maxShownBytes
	for cut > maxShownBytes-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s... (%d bytes)", strconv.Quote(s[:cut]), len(s))
}

// Printable quotes a name with characters that a terminal must not get.
func Printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}
