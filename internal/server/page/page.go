// Package page is the chat page of the server: one file without a framework,
// which talks to the OpenAI routes and keeps its conversations in the browser.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"
)

//go:embed index.html
var index []byte

// Handler serves the page. Its policy allows the one script and the one style
// sheet that the file holds, by their hashes, and no address but the server's own.
func Handler() (http.Handler, error) {
	script, err := inlineHash("script")
	if err != nil {
		return nil, err
	}
	style, err := inlineHash("style")
	if err != nil {
		return nil, err
	}
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data: blob:; media-src data: blob:; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", script, style)
	sum := sha256.Sum256(index)
	etag := fmt.Sprintf(`"%x"`, sum[:8])
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Permissions-Policy", "microphone=(self), camera=(self), geolocation=()")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(index))
	}), nil
}

// inlineHash is the source expression of the page's one element of the kind.
func inlineHash(tag string) (string, error) {
	open, end := []byte("<"+tag+">"), []byte("</"+tag+">")
	_, rest, found := bytes.Cut(index, open)
	body, rest, closed := bytes.Cut(rest, end)
	if !found || !closed || bytes.Contains(rest, open) {
		return "", fmt.Errorf("index.html: want one <%s> element without attributes", tag)
	}
	sum := sha256.Sum256(body)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:]), nil
}
