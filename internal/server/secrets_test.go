package server

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSecretsNotLogged sends keys, right and wrong, wherever a client may put one, and texts. At the most talkative level the log has
// lines for the requests, without any of them.
func TestSecretsNotLogged(t *testing.T) {
	const right, wrong, text = "key-that-is-right", "key-that-is-wrong", "text-of-the-user"
	var log bytes.Buffer
	o := testOptions(t)
	o.APIKeys = []string{right}
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug - 8}))
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"messages":[{"role":"user","content":"` + text + `"}],"max_tokens":2}`
	for _, header := range []string{"Authorization", "X-Api-Key"} {
		for _, key := range []string{right, wrong} {
			for _, path := range []string{"/v1/chat/completions?api_key=" + key, "/v1/messages?key=" + key, "/api/chat", "/nowhere"} {
				req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
				req.Header.Set("Cookie", "session="+key)
				req.Header.Set(header, key)
				if header == "Authorization" {
					req.Header.Set(header, "Bearer "+key)
				}
				w := httptest.NewRecorder()
				s.ServeHTTP(w, req)
				if strings.Contains(w.Body.String(), key) {
					t.Errorf("%s answers with the key: %s", path, w.Body)
				}
			}
		}
	}
	s.Close()
	if n := strings.Count(log.String(), "msg=request"); n < 16 {
		t.Errorf("%d lines for 16 requests:\n%s", n, log.String())
	}
	for _, secret := range []string{right, wrong, text} {
		if i := strings.Index(log.String(), secret); i >= 0 {
			t.Errorf("the log has %q: %.200s", secret, log.String()[max(i-150, 0):])
		}
	}
}
