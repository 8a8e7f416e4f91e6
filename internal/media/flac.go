package media

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/mewkiz/flac"
)

func decodeFLAC(data []byte, lim AudioLimits) (*Audio, error) {
	s, err := flac.New(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	m, err := newMixdown(int(s.Info.SampleRate), int(s.Info.NChannels), lim)
	if err != nil {
		return nil, err
	}
	for {
		f, err := s.ParseNext()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("after %d samples: %w", len(m.Samples), err)
		}
		if len(f.Subframes) != m.channels {
			return nil, fmt.Errorf("frame of %d channels in a stream of %d", len(f.Subframes), m.channels)
		}
		bits := f.BitsPerSample
		if bits == 0 { // the frame refers to the stream's header
			bits = s.Info.BitsPerSample
		}
		scale := 1 / float64(int64(1)<<(bits-1))
		for i := range int(f.BlockSize) {
			for _, sub := range f.Subframes {
				if err := m.add(float64(sub.Samples[i]) * scale); err != nil {
					return nil, err
				}
			}
		}
	}
	// A file may end between two frames, which the library takes for its end.
	// A count of zero means unknown.
	if n := s.Info.NSamples; uint64(len(m.Samples)) < n {
		return nil, fmt.Errorf("%d of %d samples: file is cut short", len(m.Samples), n)
	}
	return &m.Audio, nil
}
