package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// journalSuffix ends the name of the file that says which parts of a partial one
// are there.
const journalSuffix = ".json"

// maxJournal bounds its bytes, maxJournalParts the parts of a file.
const (
	maxJournal      = 1 << 20
	maxJournalParts = 1 << 14
)

// journal says what of a file has been fetched.
type journal struct {
	Size int64   `json:"size"`
	Part int64   `json:"part"`           // bytes of each part but the last
	ETag string  `json:"etag,omitempty"` // of the file when it was first asked for
	Done []int64 `json:"done"`           // bytes of each part, from its beginning
}

// newJournal divides a file into parts of at least the given size.
func newJournal(size, part int64) *journal {
	part = max(part, (size+maxJournalParts-1)/maxJournalParts)
	return &journal{Size: size, Part: part, Done: make([]int64, (size+part-1)/part)}
}

// readJournal returns nil if there is no journal that fits the file.
func readJournal(path string, size int64) (*journal, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if st.Size() > maxJournal {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	j := new(journal)
	if json.Unmarshal(data, j) != nil || j.check(size) != nil {
		return nil, nil
	}
	return j, nil
}

// leftJournal returns the journal of what an earlier pull left in a partial file,
// and nil if there is no such file of that size or no journal to it.
func leftJournal(partial string, size int64) (*journal, error) {
	st, err := os.Stat(partial)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || st.Size() != size {
		return nil, err
	}
	return readJournal(journalPath(partial), size)
}

func (j *journal) check(size int64) error {
	if j.Size != size || j.Part < 1 || j.Part > maxHubFile || len(j.Done) > maxJournalParts || int64(len(j.Done)) != (size+j.Part-1)/j.Part {
		return fmt.Errorf("journal of %d bytes in %d parts of %d, want %d bytes", j.Size, len(j.Done), j.Part, size)
	}
	for i, n := range j.Done {
		if n < 0 || n > j.length(i) {
			return fmt.Errorf("journal: %d bytes of part %d, which has %d", n, i, j.length(i))
		}
	}
	return nil
}

// length is the number of bytes of a part.
func (j *journal) length(i int) int64 { return min(j.Part, j.Size-int64(i)*j.Part) }

// done is the number of bytes of the file that are there.
func (j *journal) done() (n int64) {
	for _, d := range j.Done {
		n += d
	}
	return n
}

// missing lists the parts that are not complete.
func (j *journal) missing() (parts []int) {
	for i, d := range j.Done {
		if d < j.length(i) {
			parts = append(parts, i)
		}
	}
	return parts
}
