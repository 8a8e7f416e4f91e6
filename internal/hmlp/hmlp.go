// Package hmlp computes the layer plan of Inkling's image tower, the
// hierarchical MLP. A layer folds neighbouring pixels, and at the end the
// frames, into the channel axis and projects; which folds a tower of n layers
// makes follows from the tile size alone. The converter checks a checkpoint
// against the plan and the runtime builds its graph from it.
package hmlp

import (
	"fmt"
	"math"
	"slices"
)

// Bounds of Plan's arguments. They are far above any published tower (40, 2, 3
// and 4) and keep every product below 2^53.
const (
	maxPatch    = 4096
	maxTemporal = 64
	maxChannels = 64
	maxLayers   = 64
)

// widthStep is the multiple that layer widths are rounded up to.
const widthStep = 64

// Layer is one fold and the projection after it.
type Layer struct {
	In     int  // input width of the projection: channels before the fold · TFold · HWFold²
	Out    int  // output width; 0 in the last layer, whose width is that of the text model
	TFold  int  // frames that become channels
	HWFold int  // rows, and likewise columns, that become channels
	Norm   bool // RMS norm and GELU follow; true for all layers but the last
}

// scale is a row of the plan's table: a grid of t frames of h × h cells, already
// folded, with c channels in each.
type scale struct {
	t, h, c int
}

// Plan returns the layers of a tower of nLayers layers over tiles of temporal
// frames of patch × patch pixels with the given number of channels. It is an
// error when an argument is not positive or far outside of what a tower can be.
//
// Source: plan_out_scales of the reference's models/inkling, with the width of
// the temporal rows divided by 64 as in the vendor's description. The reference
// leaves that division out, which shows only from seven layers on.
func Plan(patch, temporal, channels, nLayers int) ([]Layer, error) {
	for _, a := range []struct {
		name     string
		val, max int
	}{
		{"patch_size", patch, maxPatch},
		{"temporal_patch_size", temporal, maxTemporal},
		{"n_channels", channels, maxChannels},
		{"n_layers", nLayers, maxLayers},
	} {
		if a.val < 1 || a.val > a.max {
			return nil, fmt.Errorf("hmlp: %s %d, want 1 to %d", a.name, a.val, a.max)
		}
	}
	rows := scales(patch, temporal, channels)
	pick := choose(rows, patch*patch*temporal*channels, nLayers)
	layers := make([]Layer, nLayers)
	for i := range layers {
		s, e := rows[pick[i]], rows[pick[i+1]]
		hw, t := e.h/s.h, e.t/s.t
		last := i == nLayers-1
		layers[i] = Layer{In: s.c * t * hw * hw, Out: e.c, TFold: t, HWFold: hw, Norm: !last}
		if last {
			layers[i].Out = 0
		}
	}
	return layers, nil
}

// scales lists the grids that a layer may end at, from single pixels to the
// whole tile: first space is folded, by the prime factors of the patch size from
// the largest down, then time.
func scales(patch, temporal, channels int) []scale {
	rows := []scale{{t: 1, h: 1, c: channels}}
	h := 1
	for _, f := range primesDown(patch) {
		h *= f
		rows = append(rows, scale{t: 1, h: h, c: width(h * h * channels)})
	}
	t := 1
	for _, f := range primesDown(temporal) {
		t *= f
		rows = append(rows, scale{t: t, h: patch, c: width(patch * patch * channels * t)})
	}
	return rows
}

// width rounds n up to a multiple of widthStep.
func width(n int) int { return (n + widthStep - 1) / widthStep * widthStep }

// primesDown returns the prime factors of n, largest first.
func primesDown(n int) []int {
	var fs []int
	for f := 2; n > 1; f++ {
		for n%f == 0 {
			fs = append(fs, f)
			n /= f
		}
	}
	slices.Reverse(fs)
	return fs
}

// choose returns the nLayers+1 rows that the layers run between, in order. The
// targets lie at equal steps on a logarithmic axis up to ln(volume), where volume
// counts the channels too although the rows' own values do not.
func choose(rows []scale, volume, nLayers int) []int {
	value := make([]float64, len(rows))
	for i, r := range rows {
		value[i] = math.Log(float64(r.t * r.h * r.h))
	}
	target := make([]float64, nLayers+1)
	for i := range target {
		target[i] = math.Log(float64(volume)) * float64(i) / float64(nLayers)
	}
	var pick []int
	if nLayers >= len(rows) {
		pick = nearest(target, value)
	} else {
		pick = assign(target, value)
	}
	pick[0], pick[nLayers] = 0, len(rows)-1
	return pick
}

// nearest returns for each target the value closest to it, the first on ties.
func nearest(target, value []float64) []int {
	pick := make([]int, len(target))
	for i, u := range target {
		for j, g := range value {
			if math.Abs(u-g) < math.Abs(u-value[pick[i]]) {
				pick[i] = j
			}
		}
	}
	return pick
}

// assign returns the injective assignment of targets to values with the least
// sum of distances. Both are sorted, so an increasing assignment is among the
// best, and dynamic programming over (targets, values) finds it.
func assign(target, value []float64) []int {
	n, m := len(target), len(value)
	cost := make([][]float64, n+1) // cost[i][j]: the first i targets on the first j values
	for i := range cost {
		cost[i] = make([]float64, m+1)
		for j := range cost[i] {
			switch {
			case i == 0:
			case j < i:
				cost[i][j] = math.Inf(1)
			default:
				cost[i][j] = min(cost[i][j-1], cost[i-1][j-1]+math.Abs(target[i-1]-value[j-1]))
			}
		}
	}
	pick := make([]int, n)
	for i, j := n, m; i > 0; j-- {
		if j == i || cost[i][j] < cost[i][j-1] {
			i--
			pick[i] = j - 1
		}
	}
	return pick
}
