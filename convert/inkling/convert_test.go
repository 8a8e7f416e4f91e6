package inkling

const (
	tinyRandom = "../../testdata/inkling-tiny-random/original"
	tiny       = "../../testdata/inkling-tiny"
)
