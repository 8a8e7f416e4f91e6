package chat

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/token"
)

func TestStopAndNeverSampled(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	padded, err := v.Pad(1280)
	if err != nil {
		t.Fatal(err)
	}
	id := func(s string) int32 {
		id, ok := v.ID(s)
		if !ok {
			t.Fatalf("no token %s", s)
		}
		return id
	}
	stop, err := StopIDs(padded)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int32{id("<|content_model_end_sampling|>"), id("<|endoftext|>")}, stop); d != "" {
		t.Errorf("stop ids (-want +got):\n%s", d)
	}
	want := []int32{id("<|unused_200053|>"), id("<|unused_200054|>")}
	for i := int32(1268); i < 1280; i++ {
		want = append(want, i)
	}
	for _, unpadded := range []int{0, 1268} {
		if d := cmp.Diff(want, NeverSampled(padded, unpadded)); d != "" {
			t.Errorf("never sampled with %d (-want +got):\n%s", unpadded, d)
		}
	}
	if got := NeverSampled(padded, 1266); fmt.Sprint(got[:4]) != "[1263 1264 1266 1267]" {
		t.Errorf("never sampled with a smaller vocabulary starts with %v", got[:4])
	}
	if got, err := StopIDs(vocabWith(t)); err == nil {
		t.Errorf("a vocabulary without end has the stop ids %v", got)
	}
	// A re-saved configuration names another end: the strings decide.
	resaved := ggufMetadata(v)
	resaved[token.KeyEOS] = uint64(2)
	model, err := token.FromGGUF(resaved)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := StopIDs(model); err != nil || !slices.Equal(got, stop) {
		t.Errorf("with eos 2 the stop ids are %v, %v; want %v", got, err, stop)
	}
	kimi := vocabWith(t, "<|im_end|>", "[EOS]", "<|media_pad|>")
	if got, err := StopIDs(kimi); err != nil || fmt.Sprint(got) != "[1208 1209]" {
		t.Errorf("stop ids %v, %v", got, err)
	}
	for kind, want := range map[Kind]int32{Image: 1210, Video: 1210} {
		if got, ok := SlotID(kimi, kind); !ok || got != want {
			t.Errorf("slot of %s is %d, %v; want %d", kind, got, ok, want)
		}
	}
	if _, ok := SlotID(kimi, Audio); ok {
		t.Error("a vocabulary without sound has a slot for it")
	}
}
