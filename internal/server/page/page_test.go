package page

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestHandler(t *testing.T) {
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusOK || w.Body.String() != string(index) {
		t.Fatalf("status %d, %d bytes; want 200 and the %d bytes of the file", w.Code, w.Body.Len(), len(index))
	}
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %q: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("unsafe policy: %s", policy)
	}

	again := httptest.NewRequest("GET", "/", nil)
	again.Header.Set("If-None-Match", w.Header().Get("ETag"))
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, again); w.Code != http.StatusNotModified {
		t.Errorf("the page again: status %d, want 304", w.Code)
	}
}

// TestSelfContained shows that the page needs nothing but the server: the
// policy would block it in a browser, where nobody would see why.
func TestSelfContained(t *testing.T) {
	const most = 60 << 10
	if len(index) > most {
		t.Errorf("%d bytes, want at most %d", len(index), most)
	}
	for name, re := range map[string]string{
		"another file":      `(?i)<(link|script|img|iframe)[^>]+(src|href)="(?:[^d]|d[^a])`,
		"a style attribute": `(?i)<[a-z][^>]*\sstyle=`,
		"an event handler":  `(?i)<[a-z][^>]*\son[a-z]+=`,
		"markup from text":  `innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(`,
	} {
		if m := regexp.MustCompile(re).Find(index); m != nil {
			t.Errorf("the page has %s: %s", name, m)
		}
	}
}
