package store

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear is how many names a message proposes.
const maxNear = 3

// near returns names of the store that may have been meant: other tags of the
// same model, and names that differ in a few letters.
func (s *Store) near(n Name) ([]string, error) {
	type candidate struct {
		name string
		dist int
	}
	var found []candidate
	want := strings.ToLower(n.String())
	err := s.each(func(other Name, _ *manifest) error {
		name := other.String()
		d := distance(want, strings.ToLower(name))
		if strings.EqualFold(other.Repo, n.Repo) {
			d = min(d, 1)
		}
		if d <= max(2, len(n.Repo)/3) {
			found = append(found, candidate{name, d})
		}
		return nil
	})
	if err != nil && len(found) == 0 {
		return nil, err
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range found[:min(len(found), maxNear)] {
		names = append(names, c.name)
	}
	return names, nil
}

// distance is the number of letters to insert, remove or exchange that make a of
// b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above+1, row[j]+1, diagonal+cost)
			diagonal = above
		}
	}
	return row[len(b)]
}
