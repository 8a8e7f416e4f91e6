package kimik25

const (
	tinyRandom = "../../testdata/kimi-k25-tiny-random/original"
	tiny       = "../../testdata/kimi-tiny"
)
