package grammar

import "math/big"

// The strings of a format, narrower than the format where its whole language is
// not regular or no model needs it: hosts are ASCII, without a trailing dot and
// with bounded labels; seconds do not leap; an IPv6 address ends in no IPv4 one.
const (
	leapYear = `(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)`
	fullDate = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|` + leapYear + `-02-29)`
	fullTime = `(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`
	label    = `[A-Za-z0-9](?:-?[A-Za-z0-9]){0,20}`
	host     = label + `(?:\.` + label + `){0,5}`
	octet    = `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	ipv4     = octet + `(?:\.` + octet + `){3}`
	group    = `[0-9A-Fa-f]{1,4}`
	ipv6     = `(?:(?:` + group + `:){7}` + group +
		`|(?:` + group + `:){1,7}:|(?:` + group + `:){1,6}:` + group +
		`|(?:` + group + `:){1,5}(?::` + group + `){1,2}|(?:` + group + `:){1,4}(?::` + group + `){1,3}` +
		`|(?:` + group + `:){1,3}(?::` + group + `){1,4}|(?:` + group + `:){1,2}(?::` + group + `){1,5}` +
		`|` + group + `:(?::` + group + `){1,6}|:(?::` + group + `){1,7}|::)`
	atom  = `[A-Za-z0-9!#$%&'*+/=?^_{|}~-]{1,20}`
	pchar = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})`
)

// stringFormats are regular expressions of whole strings (RFC 3339, 4122, 5321,
// 1123, 2673, 4291, 3986).
var stringFormats = map[string]string{
	"date":      fullDate,
	"time":      fullTime,
	"date-time": fullDate + `T` + fullTime,
	"uuid":      `[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`,
	"email":     atom + `(?:\.` + atom + `){0,2}@` + label + `(?:\.` + label + `){1,4}`,
	"hostname":  host,
	"ipv4":      ipv4,
	"ipv6":      ipv6,
	"uri": `[A-Za-z][A-Za-z0-9+.-]{0,30}:(?://(?:` + host + `)(?::[0-9]{1,4})?(?:/` + pchar + `*)*|` + pchar + `+(?:/` + pchar + `*)*)` +
		`(?:\?(?:` + pchar + `|[/?])*)?(?:#(?:` + pchar + `|[/?])*)?`,
}

// numberFormats are those of OpenAPI, which generators of schemas write; they are
// bounds.
var numberFormats = map[string]func() []bound{
	"int8": signed(8), "int16": signed(16), "int32": signed(32), "int64": signed(64),
	"uint8": unsigned(8), "uint16": unsigned(16), "uint32": unsigned(32), "uint64": unsigned(64), "uint": unsigned(64),
	"float": func() []bound { return nil }, "double": func() []bound { return nil },
}

func signed(bits uint) func() []bound {
	return func() []bound {
		limit := new(big.Int).Lsh(big.NewInt(1), bits-1)
		return []bound{
			{value: new(big.Rat).SetInt(new(big.Int).Neg(limit)), below: true},
			{value: new(big.Rat).SetInt(limit), exclusive: true},
		}
	}
}

func unsigned(bits uint) func() []bound {
	return func() []bound {
		return []bound{
			{value: new(big.Rat), below: true},
			{value: new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), bits)), exclusive: true},
		}
	}
}
