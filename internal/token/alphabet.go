package token

// alphabet is GPT-2's spelling of bytes as printable characters: the printable Latin-1 bytes stand for
// themselves, the other 68 become U+0100 and up in byte order. Every token is then valid text without
// spaces, and "left right" can spell a merge.
//
// Source: openai/gpt-2, src/encoder.py, bytes_to_unicode.
var alphabet = newByteAlphabet()

type byteAlphabet struct {
	char [256]rune
	byte [0x144]int16 // code point -> byte, -1 outside the alphabet
}

func newByteAlphabet() *byteAlphabet {
	a := &byteAlphabet{}
	for i := range a.byte {
		a.byte[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE) {
			r = next
			next++
		}
		a.char[b] = r
		a.byte[r] = int16(b)
	}
	return a
}

// bytes reads a spelled token. ok is false when a character is not in the alphabet.
func (a *byteAlphabet) bytes(s string) (raw []byte, ok bool) {
	raw = make([]byte, 0, len(s))
	for _, r := range s {
		if int(r) >= len(a.byte) || a.byte[r] < 0 {
			return nil, false
		}
		raw = append(raw, byte(a.byte[r]))
	}
	return raw, true
}

// spell writes bytes as a token.
func (a *byteAlphabet) spell(raw string) string {
	b := make([]rune, len(raw))
	for i := range len(raw) {
		b[i] = a.char[raw[i]]
	}
	return string(b)
}
