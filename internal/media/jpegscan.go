package media

import (
	"errors"
	"fmt"
)

// maxScans bounds the work that a small progressive file can ask for: each scan
// visits every block. Encoders write about ten.
const maxScans = 500

// jpegScan is one pass over some of the components.
type jpegScan struct {
	*entropyReader
	parts    []jpegScanPart
	from, to int // range of coefficients, in file order
	high     int // bit position of the previous pass, 0 for the first
	low      int // bit position of this pass
	endRun   int // blocks that have no more coefficients
}

// jpegScanPart is a component with the tables it is coded with.
type jpegScanPart struct {
	*jpegComponent
	dc, ac *huffman
}

// scan decodes one scan whose header is b and whose data starts at p. It
// returns where the data ends.
func (d *jpegDecoder) scan(b []byte, p int) (int, error) {
	if d.scans++; d.scans > maxScans {
		return 0, fmt.Errorf("more than %d scans", maxScans)
	}
	s := jpegScan{entropyReader: &entropyReader{data: d.data, pos: p}}
	if err := s.header(d, b); err != nil {
		return 0, err
	}
	block := s.blockFunc(d.progressive)
	mcu := 0
	// next is called before each MCU.
	next := func() {
		if d.restart > 0 && mcu > 0 && mcu%d.restart == 0 {
			s.restartMarker(mcu/d.restart - 1)
			s.endRun = 0
			for _, c := range s.parts {
				c.predictor = 0
			}
		}
		mcu++
	}
	if len(s.parts) == 1 { // not interleaved: an MCU is one block
		c := s.parts[0]
		for y := 0; y < c.rows && s.err == nil; y++ {
			for x := range c.cols {
				next()
				block(c, x, y)
			}
		}
	} else {
		for my := 0; my < ceilDiv(d.h, 8*d.vMax) && s.err == nil; my++ {
			for mx := range ceilDiv(d.w, 8*d.hMax) {
				next()
				for _, c := range s.parts {
					for i := range c.h * c.v {
						block(c, mx*c.h+i%c.h, my*c.v+i/c.h)
					}
				}
			}
		}
	}
	if errors.Is(s.err, errScanEnds) {
		if marker, _ := nextMarker(d.data, p); marker == 0 {
			return 0, cutShort(len(d.data))
		}
	}
	if s.err != nil {
		return 0, &FormatError{Offset: int64(p), Err: fmt.Errorf("scan %d: %w", d.scans, s.err)}
	}
	// Whole unread bytes in the accumulator belong to no block; the next marker
	// is searched behind them.
	return s.pos, nil
}

// header reads the scan header.
func (s *jpegScan) header(d *jpegDecoder, b []byte) error {
	if len(b) < 1 || b[0] < 1 || b[0] > 4 || len(b) != 4+2*int(b[0]) {
		return fmt.Errorf("scan header of %d bytes", len(b))
	}
	n := int(b[0])
	s.from, s.to = int(b[1+2*n]), int(b[2+2*n])
	s.high, s.low = int(b[3+2*n]>>4), int(b[3+2*n]&15)
	if !d.progressive {
		s.from, s.to, s.high, s.low = 0, 63, 0, 0
	} else if s.to > 63 || s.from > s.to || (s.from == 0) != (s.to == 0) || s.from > 0 && n > 1 ||
		s.low > 13 || s.high > 0 && s.high != s.low+1 {
		return fmt.Errorf("progressive scan of coefficients %d to %d, bits %d to %d", s.from, s.to, s.high, s.low)
	}
	blocks := 0
	for i := range n {
		c := d.component(b[1+2*i])
		if c == nil {
			return fmt.Errorf("scan of unknown component %d", b[1+2*i])
		}
		for _, p := range s.parts {
			if p.jpegComponent == c {
				return fmt.Errorf("scan of component %d twice", c.id)
			}
		}
		tables := b[2+2*i]
		if tables>>4 > 3 || tables&15 > 3 {
			return fmt.Errorf("scan of component %d with huffman tables %#x", c.id, tables)
		}
		part := jpegScanPart{c, d.dc[tables>>4], d.ac[tables&15]}
		if part.dc == nil && s.from == 0 && s.high == 0 || part.ac == nil && s.to > 0 {
			return fmt.Errorf("scan of component %d without huffman table", c.id)
		}
		if err := c.begin(d); err != nil {
			return err
		}
		s.parts = append(s.parts, part)
		blocks += c.h * c.v
	}
	if n > 1 && blocks > 10 {
		return fmt.Errorf("scan with %d blocks in an MCU, at most 10 are allowed", blocks)
	}
	return nil
}

// begin prepares a component for a scan; at its first one it takes memory and
// notes the quantisation table.
func (c *jpegComponent) begin(d *jpegDecoder) error {
	c.predictor = 0
	if c.quant != nil {
		return nil
	}
	if d.quant[c.table] == nil {
		return fmt.Errorf("no quantisation table for component %d", c.id)
	}
	c.quant = d.quant[c.table]
	blocks := c.stride * ceilDiv(d.h, 8*d.vMax) * c.v
	c.pix = make([]uint8, 64*blocks)
	if d.progressive {
		c.coefficients = make([]int16, 64*blocks)
	}
	return nil
}

// blockFunc returns the decoder for one block of this scan.
func (s *jpegScan) blockFunc(progressive bool) func(c jpegScanPart, x, y int) {
	if !progressive {
		return func(c jpegScanPart, x, y int) {
			var b [64]int16
			s.sequential(c, &b)
			c.inverse(&b, x, y)
		}
	}
	pass := s.acFirst
	switch {
	case s.from == 0 && s.high == 0:
		pass = s.dcFirst
	case s.from == 0:
		pass = s.dcRefine
	case s.high > 0:
		pass = s.acRefine
	}
	return func(c jpegScanPart, x, y int) {
		pass(c, c.block(x, y))
	}
}

// block returns the coefficients of a block, in natural order.
func (c *jpegComponent) block(x, y int) *[64]int16 {
	return (*[64]int16)(c.coefficients[64*(y*c.stride+x):])
}

// transform runs the inverse DCT over all blocks of a progressive component.
func (c *jpegComponent) transform() {
	for y := range c.rows {
		for x := range c.cols {
			c.inverse(c.block(x, y), x, y)
		}
	}
}

// dcDelta reads the difference of a DC coefficient and returns its value.
func (s *jpegScan) dcDelta(c jpegScanPart) int {
	size := s.symbol(c.dc)
	if size > 15 {
		s.fail(errors.New("oversized coefficient"))
		return 0
	}
	c.predictor += s.signed(size)
	return c.predictor
}

// sequential reads all coefficients of a block (T.81, F.2.2).
func (s *jpegScan) sequential(c jpegScanPart, b *[64]int16) {
	b[0] = int16(s.dcDelta(c))
	for k := 1; k < 64; k++ {
		run, size := s.runSize(c)
		if size == 0 {
			if run < 15 {
				return
			}
			k += 15
			continue
		}
		if k += run; k > 63 {
			s.fail(errors.New("too many coefficients"))
			return
		}
		b[zigzag[k]] = int16(s.signed(size))
	}
}

// runSize reads the symbol of an AC coefficient.
func (s *jpegScan) runSize(c jpegScanPart) (run, size int) {
	v := s.symbol(c.ac)
	return v >> 4, v & 15
}

func (s *jpegScan) dcFirst(c jpegScanPart, b *[64]int16) {
	b[0] = int16(s.dcDelta(c) << s.low)
}

func (s *jpegScan) dcRefine(_ jpegScanPart, b *[64]int16) {
	b[0] |= int16(s.bits(1) << s.low)
}

// acFirst reads the high bits of a band of coefficients (T.81, G.1.2.2).
func (s *jpegScan) acFirst(c jpegScanPart, b *[64]int16) {
	if s.endRun > 0 {
		s.endRun--
		return
	}
	for k := s.from; k <= s.to; k++ {
		run, size := s.runSize(c)
		if size == 0 {
			if run < 15 {
				s.endRun = 1<<run + s.bits(run) - 1
				return
			}
			k += 15
			continue
		}
		if k += run; k > s.to {
			s.fail(errors.New("too many coefficients"))
			return
		}
		b[zigzag[k]] = int16(s.signed(size) << s.low)
	}
}

// acRefine reads one more bit of a band of coefficients (T.81, G.1.2.3): of
// those that are known already, and of those that become non-zero by it.
func (s *jpegScan) acRefine(c jpegScanPart, b *[64]int16) {
	bit := int16(1) << s.low
	k := s.from
	if s.endRun == 0 {
		for ; k <= s.to; k++ {
			run, size := s.runSize(c)
			var value int16
			switch {
			case size == 1:
				if value = bit; s.bits(1) == 0 {
					value = -bit
				}
			case size > 1:
				s.fail(errors.New("oversized coefficient"))
				return
			case run < 15:
				s.endRun = 1<<run + s.bits(run)
			}
			if s.endRun > 0 {
				break
			}
			k = s.refine(b, k, run, bit)
			if value != 0 && k <= s.to {
				b[zigzag[k]] = value
			}
		}
	}
	if s.endRun > 0 {
		s.refine(b, k, -1, bit)
		s.endRun--
	}
}

// refine corrects known coefficients from k on, up to the zero after run zeros
// or to the end of the band, and returns where it stopped.
func (s *jpegScan) refine(b *[64]int16, k, run int, bit int16) int {
	for ; k <= s.to; k++ {
		at := &b[zigzag[k]]
		switch {
		case *at == 0:
			if run == 0 {
				return k
			}
			run--
		case s.bits(1) == 1 && *at&bit == 0:
			if *at > 0 {
				*at += bit
			} else {
				*at -= bit
			}
		}
	}
	return k
}
