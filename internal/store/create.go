package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Create makes a model of what a Modelfile says and gives it a name, in place of
// the model that may have it. A base model that is on the hub and not in the store
// is pulled. progress may be nil; it is called from one goroutine at a time.
func (s *Store) Create(ctx context.Context, name string, f *Modelfile, progress func(Progress)) (_ *Model, err error) {
	n, err := ParseName(name)
	if err != nil {
		return nil, err
	}
	if len(f.From) == 0 {
		return nil, errors.New("no FROM")
	}
	if err := cmp.Or(CheckTemplate(f.Template), f.Params.check()); err != nil {
		return nil, err
	}
	a, err := s.newAdding(ctx, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = a.finishMade(err) }()
	m := new(manifest)
	for i, from := range f.From {
		if err := a.from(ctx, m, f.Dir, from, i == 0); err != nil {
			if from.Line > 0 {
				err = fmt.Errorf("line %d: FROM %s: %w", from.Line, from.Ref, err)
			}
			return nil, err
		}
	}
	return a.complete(ctx, n, m, f)
}

// Import gives the GGUF files in a command's folder, of one model, a name. f is
// for settings and may be nil.
func (s *Store) Import(ctx context.Context, name, source string, w *Work, f *Modelfile, progress func(Progress)) (_ *Model, err error) {
	n, err := ParseName(name)
	if err != nil {
		return nil, err
	}
	a, err := s.newAdding(ctx, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = a.finishMade(err) }()
	m := &manifest{Source: source}
	if m.Files, err = a.folder(ctx, w.Dir, a.moveIn); err != nil {
		return nil, err
	}
	if f == nil {
		f = new(Modelfile)
	}
	return a.complete(ctx, n, m, f)
}

// complete adds the settings and commits.
func (a *adding) complete(ctx context.Context, n Name, m *manifest, f *Modelfile) (_ *Model, err error) {
	m.Params = f.Params.over(m.Params)
	m.System, m.Template = cmp.Or(f.System, m.System), cmp.Or(f.Template, m.Template)
	if f.Messages != nil {
		m.Messages = f.Messages
	}
	if f.License != nil {
		m.License = f.License
	}
	slices.SortStableFunc(m.Files, func(a, b File) int { return cmp.Compare(order[a.Role], order[b.Role]) })
	if err := checkFiles(m.Files); err != nil {
		return nil, err
	}
	a.report(Progress{Status: "reading the headers"})
	if m.Details, err = a.inspect(m.Files); err != nil {
		return nil, err
	}
	a.report(Progress{Status: "writing manifest"})
	return a.s.commit(ctx, n, m)
}

// order is the order of files in a manifest.
var order = map[Role]int{RoleModel: 0, RoleMMProj: 1, RoleMTP: 2}

// from adds what one FROM names.
func (a *adding) from(ctx context.Context, m *manifest, dir string, from From, first bool) error {
	if digest := strings.TrimPrefix(from.Ref, "@"); digestForm.MatchString(digest) {
		return a.fromBlob(ctx, m, digest, from.Name)
	}
	path, st, err := localPath(dir, from.Ref)
	switch {
	case err != nil:
		return err
	case st != nil && st.IsDir():
		return a.fromFolder(ctx, m, path, first)
	case st != nil:
		return a.fromFile(ctx, m, path, first)
	case !first:
		return errors.New("only the first FROM can be a model of the store; another one is a file")
	}
	return a.fromModel(ctx, m, from.Ref)
}

// localPath finds the file or folder that a FROM means. It returns no info if it
// means a name.
func localPath(dir, ref string) (string, fs.FileInfo, error) {
	if dir == "" {
		return "", nil, nil
	}
	path := ref
	if rest, ok := strings.CutPrefix(ref, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", nil, err
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	st, err := os.Stat(path)
	if err == nil {
		return path, st, nil
	}
	isPath := strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, ".") || strings.HasPrefix(ref, "~") || strings.HasSuffix(strings.ToLower(ref), ".gguf")
	if isPath {
		return "", nil, err
	}
	return "", nil, nil
}

// fromBlob adds a blob that was put by its digest.
func (a *adding) fromBlob(ctx context.Context, m *manifest, digest, name string) error {
	st, err := os.Stat(a.s.blobPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", digest, ErrNoBlob)
	}
	if err != nil {
		return err
	}
	f := File{Role: RoleModel, Digest: digest, Size: st.Size()}
	if ok, err := a.s.hold(ctx, &a.holding, f); err != nil || !ok {
		return cmp.Or(err, fmt.Errorf("%s: %w", digest, ErrNoBlob))
	}
	if f.Role, err = RoleOf(a.s.blobPath(digest), name); err != nil {
		return err
	}
	f.Name = safeName(cmp.Or(name, string(f.Role)))
	m.Files = append(m.Files, f)
	return nil
}

// fromFolder adds the one model of a folder.
func (a *adding) fromFolder(ctx context.Context, m *manifest, dir string, first bool) (err error) {
	if !first {
		return errors.New("only the first FROM can be a folder; another one is a file")
	}
	m.Source = dir
	m.Files, err = a.folder(ctx, dir, a.copyIn)
	return err
}

// folder adds the one model of a folder.
func (a *adding) folder(ctx context.Context, dir string, add func(context.Context, string, Role) (File, error)) ([]File, error) {
	paths, err := ggufFiles(dir)
	if err != nil {
		return nil, err
	}
	models, _, _ := variants(paths)
	switch {
	case len(models) > 1:
		return nil, &QuantError{Source: dir, Available: available(models)}
	case len(models) == 0 && isCheckpoint(dir):
		return nil, fmt.Errorf("it is a checkpoint: inkling-run import %s NAME converts it", dir)
	}
	c, err := choose(dir, "", paths)
	if err != nil {
		return nil, err
	}
	return addChosen(ctx, c, dir, add)
}

func isCheckpoint(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "config.json"))
	return err == nil
}

// ggufFiles lists the names of the GGUF files in a folder.
func ggufFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && strings.EqualFold(filepath.Ext(e.Name()), ".gguf") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// fromFile adds a file: as the first one a model, with its other parts, and with
// its projector and its MTP file from the same folder; then those two.
func (a *adding) fromFile(ctx context.Context, m *manifest, path string, first bool) error {
	if !first {
		role, err := RoleOf(path, filepath.Base(path))
		if err != nil {
			return err
		}
		if role == RoleModel {
			return errors.New("a second model; only its projector and its MTP file can be named beside it")
		}
		f, err := a.copyIn(ctx, path, role)
		if err != nil {
			return err
		}
		m.Files = append(withoutRole(m.Files, role), f)
		return nil
	}
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	paths, err := ggufFiles(dir)
	if err != nil {
		return err
	}
	c, err := chooseFile(dir, name, paths)
	if err != nil {
		return err
	}
	m.Source = path
	m.Files, err = addChosen(ctx, c, dir, a.copyIn)
	return err
}

// withoutRole takes the projector away that was found beside the model when
// another one is named.
func withoutRole(files []File, role Role) []File {
	return slices.DeleteFunc(slices.Clone(files), func(f File) bool { return f.Role == role })
}

// addChosen adds the files of a folder that make a model.
func addChosen(ctx context.Context, c chosen, dir string, add func(context.Context, string, Role) (File, error)) ([]File, error) {
	var files []File
	for _, of := range c.files() {
		f, err := add(ctx, filepath.Join(dir, of.Name), of.Role)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// fromModel takes over all that another model has.
func (a *adding) fromModel(ctx context.Context, m *manifest, ref string) error {
	n, err := ParseName(ref)
	if err != nil {
		return err
	}
	base, err := a.s.manifest(n)
	if errors.Is(err, ErrNotFound) && n.OnHub() {
		if _, err = a.s.Pull(ctx, ref, a.report); err == nil {
			base, err = a.s.manifest(n)
		}
	}
	if err != nil {
		return err
	}
	for _, f := range base.Files {
		ok, err := a.s.hold(ctx, &a.holding, f)
		if err != nil {
			return err
		}
		if !ok {
			_, err := a.s.blob(f)
			return cmp.Or(err, fmt.Errorf("%s: it was removed meanwhile", ref))
		}
	}
	m.content, m.Source = base.content, base.Source
	return nil
}
