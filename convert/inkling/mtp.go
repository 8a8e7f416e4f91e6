package inkling

import "strings"

// isMTP reports whether a tensor belongs to the layers for multi-token prediction.
// They are no part of the text file: other readers abort on tensors beyond the
// trunk's.
func isMTP(name string) bool {
	return strings.HasPrefix(name, "model.mtp.") || strings.HasPrefix(name, "mtp.")
}

// Optional reports that the layers for multi-token prediction need not be there.
func (arch) Optional(tensor string) bool { return isMTP(tensor) }

// skipMTP leaves out the layers for multi-token prediction.
func (p *planner) skipMTP() {
	n := 0
	for _, name := range p.src.Tensors.Names() {
		if isMTP(name) {
			p.match.Skip(name)
			n++
		}
	}
	if n > 0 {
		p.notef("the layers for multi-token prediction (%d tensors) are left out", n)
	}
}
