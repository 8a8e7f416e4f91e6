package main

import "testing"

func TestTypedPath(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for in, want := range map[string]string{
		"a.png":           "a.png",
		"my picture.png":  "my picture.png",
		`my\ picture.png`: "my picture.png",
		`'my picture'`:    "my picture",
		`"~/a.png"`:       "~/a.png",
		`'`:               `'`,
		`'a`:              `'a`,
		"~/a b.png":       "/home/me/a b.png",
		"~":               "~",
		"http://x/~/a":    "http://x/~/a",
	} {
		if got := typedPath(in); got != want {
			t.Errorf("typedPath(%q) = %q, want %q", in, got, want)
		}
	}
}
