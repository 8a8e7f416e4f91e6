package convert

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/inkling-go/inkling/internal/gguf"
)

// journal is a file beside the outputs that lists which checkpoint tensors are
// converted, so that an interrupted run can be continued. Each line is a JSON
// object: first a [journalHead], then a [journalEntry] for each tensor.
type journal struct {
	path    string
	resumed bool                    // an earlier run's journal was found
	done    map[string]journalEntry // by name, of an earlier run

	mu   sync.Mutex
	file *os.File
}

// journalHead says which run a journal is of.
type journalHead struct {
	Run   string `json:"run"`   // a hash of all that the outputs depend on
	Chunk int64  `json:"chunk"` // bytes of a chunk, which the digests depend on
}

// journalEntry is a checkpoint tensor all of whose outputs are written.
type journalEntry struct {
	Tensor string `json:"tensor"`
	Digest uint64 `json:"digest"`
	Bad    int64  `json:"bad,omitempty"` // weights that are NaN or infinite
}

// maxJournal bounds a journal that is read; one line for each tensor of the largest
// published checkpoint takes 30 MB.
const maxJournal = 256 << 20

// ErrOtherRun is wrapped by the error of a run that is to be continued but has other
// settings, or another checkpoint, than the one that was interrupted.
var ErrOtherRun = errors.New("the interrupted run had other settings or another checkpoint")

// openJournal begins the journal of the run, or goes on with that of an earlier one.
// Chunks are then those of the earlier run.
func (w *writing) openJournal() error {
	run, err := w.fingerprint()
	if err != nil {
		return err
	}
	j := &journal{path: w.outs[0].journalPath()}
	w.journal = j
	if w.o.Resume {
		if found, err := w.resumeJournal(j, run); found || err != nil {
			return err
		}
	}
	if j.file, err = gguf.Claim(j.path, true); err != nil {
		return err
	}
	return j.line(journalHead{run, chunkBytes(w.o.Workers)})
}

// resumeJournal goes on with the journal of an earlier run, if there is one. A
// journal that is not this run's stays as it is.
func (w *writing) resumeJournal(j *journal, run string) (found bool, err error) {
	f, err := gguf.Claim(j.path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	head, err := j.read()
	if err != nil {
		return true, err
	}
	if head.Run != run {
		return true, fmt.Errorf("%s: %w", j.path, ErrOtherRun)
	}
	if w.units, err = units(w.src, w.targets, head.Chunk); err != nil {
		return true, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return true, err
	}
	j.resumed, j.file = true, f
	return true, nil
}

// fingerprint returns a hash of the outputs' headers and of the shards' names, sizes
// and times.
func (w *writing) fingerprint() (string, error) {
	h := sha256.New()
	for _, out := range w.outs {
		fmt.Fprintln(h, out.parts, out.kv)
		for _, t := range out.targets {
			fmt.Fprintln(h, t.Name, t.Dims, t.to, t.factors, t.importance != nil)
		}
	}
	for _, shard := range w.src.Tensors.Shards() {
		st, err := os.Stat(w.src.Path(shard))
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, shard, st.Size(), st.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// read reads the journal of an earlier run. A last line that was cut off is no entry.
func (j *journal) read() (journalHead, error) {
	data, err := readBounded(j.path, maxJournal)
	if err != nil {
		return journalHead{}, err
	}
	var head journalHead
	j.done = make(map[string]journalEntry)
	r := bufio.NewReader(bytes.NewReader(data))
	for first := true; ; first = false {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return head, nil
		}
		var e journalEntry
		if first {
			err = json.Unmarshal(line, &head)
			if err == nil && head.Chunk <= 0 {
				err = fmt.Errorf("chunk is %d", head.Chunk)
			}
		} else if err = json.Unmarshal(line, &e); err == nil {
			j.done[e.Tensor] = e
		}
		if err != nil {
			return head, &FormatError{j.path, -1, err.Error()}
		}
	}
}

// add records that a unit is done.
func (j *journal) add(u *unit) error {
	return j.line(journalEntry{u.from.Name, u.digest.Load(), u.bad.Load()})
}

func (j *journal) line(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.file.Write(append(data, '\n'))
	return err
}

// end closes the journal, and removes it if nobody needs it any more.
func (j *journal) end(remove bool) error {
	if j.file == nil {
		return nil
	}
	var err error
	if remove { // while it is ours
		err = os.Remove(j.path)
	}
	return errors.Join(err, j.file.Close())
}

// resume reads what an earlier run has written and returns the units that are not
// there, or not as they were.
func (w *writing) resume(ctx context.Context) ([]*unit, error) {
	var there []*unit
	for _, u := range w.units {
		if _, ok := w.journal.done[u.from.Name]; ok {
			there = append(there, u)
		}
	}
	err := w.each(ctx, there, func(c *chunk, u *unit, a, b int64) error {
		*c = chunk{unit: u, a: a, b: b, buf: c.buf}
		if err := c.check(); err != nil {
			return err
		}
		u.digest.Add(c.digest)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var todo []*unit
	for _, u := range w.units {
		e, ok := w.journal.done[u.from.Name]
		if !ok || e.Digest != u.digest.Load() {
			u.digest.Store(0)
			todo = append(todo, u)
			continue
		}
		if e.Bad > 0 {
			u.bad.Store(e.Bad)
			w.anyBad.Store(true)
		}
		for _, x := range u.uses {
			x.target.keep(x.N * x.target.rowBytes)
		}
		w.kept += u.outBytes(0, u.rows)
		w.advance(u.uses[0].target, u.from.Shard, u.inBytes(), u.outBytes(0, u.rows))
	}
	return todo, nil
}
