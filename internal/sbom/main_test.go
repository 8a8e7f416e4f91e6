package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestWrite describes the test's own program, whose parts are known.
func TestWrite(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := write(&b, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), []string{self}); err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.Creation.Created != "2026-01-02T03:04:05Z" {
		t.Errorf("created %s", d.Creation.Created)
	}
	ids := map[string]bool{documentID: true}
	std := ""
	for _, p := range d.Packages {
		ids[p.ID] = true
		if p.Name == "std" {
			std = p.Version
		}
	}
	if want := strings.TrimPrefix(runtime.Version(), "go"); std != want {
		t.Errorf("std has version %q, want %q", std, want)
	}
	for _, r := range d.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%s %s %s names an element that is not there", r.From, r.Type, r.To)
		}
	}
}

func TestWriteForeign(t *testing.T) {
	err := write(&bytes.Buffer{}, time.Time{}, []string{"main.go"})
	if err == nil || !strings.Contains(err.Error(), "main.go") {
		t.Errorf("error %v, want one that names the file", err)
	}
}
