package store

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// What a name means that leaves parts out.
const (
	defaultHost      = "local"
	defaultNamespace = "library"
	defaultTag       = "latest"
	hubHost          = "hf.co"
)

// maxPart and maxHost bound the parts of a name, as Ollama does; file systems
// allow 255 bytes.
const (
	maxPart = 80
	maxHost = 255
)

// Name is the full name of a model. Case does not tell names apart: two models
// cannot differ in it alone, as some file systems would take them for one.
type Name struct {
	Host, Namespace, Repo, Tag string
}

// ParseName reads [HOST/]NAMESPACE/REPO[:TAG], NAME[:TAG], or a repository of the
// Hugging Face Hub, hf.co/ORG/REPO[:QUANT], which may also be written with
// huggingface.co or as the https address of its page.
func ParseName(s string) (Name, error) {
	n := Name{Host: defaultHost, Namespace: defaultNamespace, Tag: defaultTag}
	rest, err := withoutScheme(s)
	if err != nil {
		return Name{}, err
	}
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		rest, n.Tag = rest[:i], rest[i+1:]
	}
	switch parts := strings.Split(rest, "/"); len(parts) {
	case 1:
		n.Repo = parts[0]
	case 2:
		n.Namespace, n.Repo = parts[0], parts[1]
	case 3:
		n.Host, n.Namespace, n.Repo = parts[0], parts[1], parts[2]
	default:
		return Name{}, nameErrorf(s, "want [HOST/]NAMESPACE/REPO[:TAG] or NAME[:TAG]")
	}
	switch strings.ToLower(n.Host) {
	case hubHost, "www.hf.co", "huggingface.co", "www.huggingface.co":
		n.Host = hubHost
	}
	return n, n.check(s)
}

// withoutScheme makes the name of a web address, of which those of repositories
// on the hub or its mirror are names.
func withoutScheme(s string) (string, error) {
	if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
		return s, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil {
		return "", nameErrorf(s, "not the address of a repository")
	}
	host := u.Host
	if mirror, err := url.Parse(os.Getenv("HF_ENDPOINT")); err == nil && mirror.Host == host {
		host = hubHost
	}
	path := strings.TrimSuffix(strings.Trim(u.Path, "/"), "/tree/main")
	if strings.Count(path, "/") != 1 {
		return "", nameErrorf(s, "want the address of a repository, https://huggingface.co/ORG/REPO")
	}
	return host + "/" + path, nil
}

// NameError is a name that no model can have.
type NameError struct{ Name, Why string }

func (e *NameError) Error() string { return fmt.Sprintf("model name %q: %s", e.Name, e.Why) }

func nameErrorf(name, format string, args ...any) error {
	return &NameError{Name: name, Why: fmt.Sprintf(format, args...)}
}

func (n Name) check(s string) error {
	for _, p := range []struct {
		what, part, also string
		limit            int
	}{
		{"host", n.Host, "_-.:", maxHost},
		{"namespace", n.Namespace, "_-", maxPart},
		{"name", n.Repo, "_-.", maxPart},
		{"tag", n.Tag, "_-.", maxPart},
	} {
		if p.part == "" {
			return nameErrorf(s, "the %s is empty", p.what)
		}
		if len(p.part) > p.limit {
			return nameErrorf(s, "the %s has %d characters, at most %d are allowed", p.what, len(p.part), p.limit)
		}
		for i, r := range p.part {
			if !isAlnum(r) && r != '_' && (i == 0 || !strings.ContainsRune(p.also, r)) {
				return nameErrorf(s, "%q cannot stand in the %s; letters, digits and %s can, of which the first is a letter, a digit or _", r, p.what, p.also)
			}
		}
	}
	return nil
}

func isAlnum(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// String writes the name without the parts that every local model has, but always
// with the tag.
func (n Name) String() string {
	s := n.Repo + ":" + n.Tag
	if n.Host == defaultHost && n.Namespace == defaultNamespace {
		return s
	}
	if n.Host == defaultHost {
		return n.Namespace + "/" + s
	}
	return n.Host + "/" + n.Namespace + "/" + s
}

// OnHub reports whether the name is that of a repository of the Hugging Face Hub,
// which [Store.Pull] can fetch.
func (n Name) OnHub() bool { return n.Host == hubHost }

// path is where the name lies below manifests and models.
func (n Name) path() string {
	return filepath.Join(strings.ToLower(n.Host), strings.ToLower(n.Namespace), strings.ToLower(n.Repo), strings.ToLower(n.Tag))
}
