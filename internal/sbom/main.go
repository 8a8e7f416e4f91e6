// Sbom lists what a Go program is made of as SPDX 2.3 JSON: the modules that the
// linker noted in the files, with their versions and checksums.
//
//	sbom FILE... > sbom.spdx.json
//
// With -notices it writes the terms of all these modules instead.
//
//	sbom -notices FILE... > NOTICES
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

func main() {
	notices := flag.Bool("notices", false, "write the terms of the modules")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: sbom [-notices] FILE... > sbom.spdx.json")
		os.Exit(2)
	}
	var err error
	if *notices {
		err = writeNotices(os.Stdout, flag.Args())
	} else {
		err = write(os.Stdout, time.Now(), flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// The parts of SPDX 2.3 that are written.
type (
	document struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      creation       `json:"creationInfo"`
		Packages      []pkg          `json:"packages"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	pkg struct {
		ID        string     `json:"SPDXID"`
		Name      string     `json:"name"`
		Version   string     `json:"versionInfo,omitempty"`
		Location  string     `json:"downloadLocation"`
		Analyzed  bool       `json:"filesAnalyzed"`
		Checksums []checksum `json:"checksums,omitempty"`
		Refs      []ref      `json:"externalRefs,omitempty"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	ref struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const documentID = "SPDXRef-DOCUMENT"

// write describes the files and the modules in them.
func write(w io.Writer, now time.Time, files []string) error {
	d := document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: documentID, Name: "inkling",
		Creation: creation{Created: now.UTC().Format(time.RFC3339), Creators: []string{"Tool: sbom"}},
	}
	all := sha256.New()
	modules := map[string]pkg{}
	for i, path := range files {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		all.Write(sum[:])
		file := pkg{
			ID: fmt.Sprintf("SPDXRef-File-%d", i), Name: filepath.Base(path), Version: info.Main.Version, Location: "NOASSERTION",
			Checksums: []checksum{{"SHA256", hex.EncodeToString(sum[:])}},
		}
		d.Packages = append(d.Packages, file)
		d.Relationships = append(d.Relationships, relationship{documentID, "DESCRIBES", file.ID})
		for _, m := range append(info.Deps, &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}) {
			p, err := module(m)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			modules[p.ID] = p
			d.Relationships = append(d.Relationships, relationship{file.ID, "DEPENDS_ON", p.ID})
		}
	}
	for _, p := range modules {
		d.Packages = append(d.Packages, p)
	}
	slices.SortFunc(d.Packages[len(files):], func(a, b pkg) int { return cmp.Compare(a.ID, b.ID) })
	d.Namespace = "https://github.com/inkling-go/inkling/spdx/" + hex.EncodeToString(all.Sum(nil))
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// module describes a module, with the checksum of go.sum if it has one.
func module(m *debug.Module) (pkg, error) {
	for m.Replace != nil {
		m = m.Replace
	}
	p := pkg{
		ID: "SPDXRef-Module-" + identifier(m.Path+"-"+m.Version), Name: m.Path, Version: m.Version, Location: "NOASSERTION",
		Refs: []ref{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}},
	}
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		raw, err := base64.StdEncoding.DecodeString(sum)
		if err != nil {
			return pkg{}, fmt.Errorf("checksum of %s: %w", m.Path, err)
		}
		p.Checksums = []checksum{{"SHA256", hex.EncodeToString(raw)}}
	}
	return p, nil
}

// identifier keeps to the characters that SPDX allows: letters, digits, '.' and '-'.
func identifier(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, s)
}
