package measurecmd

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/buildinfo"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/internal/bench"
)

// benchReport is what bench prints, in the form of -o json.
type benchReport struct {
	Build       buildinfo.Info `json:"build"`
	CPU         string         `json:"cpu"`
	Threads     int            `json:"threads"`
	Bandwidth   float64        `json:"memory_bandwidth,omitempty"` // read, bytes a second
	KVType      string         `json:"kv_type"`
	UBatch      int            `json:"ubatch_size"`
	Repetitions int            `json:"repetitions"`
	Models      []benchModel   `json:"models"`
}

// benchModel is one model and its results.
type benchModel struct {
	Name       string         `json:"model"`
	Arch       string         `json:"architecture"`
	Type       string         `json:"type"`
	Synth      bool           `json:"synth,omitempty"` // made up
	Device     string         `json:"device"`
	Bandwidth  float64        `json:"device_bandwidth,omitempty"` // of the GPU, copied, bytes a second
	Bytes      int64          `json:"bytes"`                      // of all weights
	Active     int64          `json:"active_bytes"`               // of those that a token uses
	Parameters int64          `json:"parameters"`
	Results    []bench.Result `json:"results"`

	Streaming *binding.Streaming `json:"host_experts,omitempty"` // where experts in host memory may be computed

	Floors []*bench.Floors `json:"floors,omitempty"`
}

// benchFormats are the values of --output.
var benchFormats = map[string]func(io.Writer, *benchReport) error{
	"table": benchTable, "md": benchMarkdown, "csv": benchCSV,
	"json": func(w io.Writer, r *benchReport) error { return report.JSON(w, r) },
}

// columns are the headings for people.
func (r *benchReport) columns() []string {
	list := []string{"model", "type", "size", "params", "device", "threads", "test", "t/s", "per token", "bandwidth"}
	if r.guessed() {
		list = append(list, "guesses")
	}
	if r.towers() {
		list = append(list, "of prefill")
	}
	return list
}

// towers reports whether a result is one of a tower.
func (r *benchReport) towers() bool {
	return r.any(func(res bench.Result) bool { return res.Tower != nil })
}

// guessed reports whether a result has guesses.
func (r *benchReport) guessed() bool {
	return r.any(func(res bench.Result) bool { return res.Drafts != nil })
}

// any reports whether a result is as is says.
func (r *benchReport) any(is func(bench.Result) bool) bool {
	return slices.ContainsFunc(r.Models, func(m benchModel) bool { return slices.ContainsFunc(m.Results, is) })
}

// benchRow is a result for people.
func benchRow(r *benchReport, m *benchModel, res bench.Result) []string {
	perToken, bandwidth := "", ""
	if res.BytesPerToken > 0 {
		perToken = report.BinarySize(res.BytesPerToken)
		bandwidth = fmt.Sprintf("%.1f GB/s", res.Bandwidth/1e9)
		if res.OfMeasured > 0 {
			bandwidth += fmt.Sprintf(", %.0f %%", 100*res.OfMeasured)
		}
	}
	guesses := ""
	if d := res.Drafts; d != nil {
		guesses = fmt.Sprintf("%.2f tokens in %.1f + %.1f + %.1f ms", d.Tokens, d.Draft, d.Verify, d.Rollback)
	}
	row := []string{
		m.Name, m.Type, report.BinarySize(m.Bytes), report.Parameters(m.Parameters), m.Device, strconv.Itoa(r.Threads),
		res.Test, fmt.Sprintf("%.2f ± %.2f", res.Mean, res.Spread), perToken, bandwidth,
	}
	if r.guessed() {
		row = append(row, guesses)
	}
	if r.towers() {
		share := ""
		if res.Tower != nil {
			share = fmt.Sprintf("%.2f %%", 100*res.Tower.OfPrefill)
		}
		row = append(row, share)
	}
	return row
}

// benchNote says what the shares are of.
func benchNote(r *benchReport) string {
	note := fmt.Sprintf("%s; %s keys and values; %s", r.CPU, r.KVType, r.Build.Version)
	if r.Bandwidth > 0 {
		note += fmt.Sprintf("; memory reads %.1f GB/s with %d threads", r.Bandwidth/1e9, r.Threads)
	}
	return note
}

// benchHostExperts says of each model how fast its experts in host memory are, and how
// much of what was chosen of a file was in memory.
func benchHostExperts(r *benchReport) []string {
	var lines []string
	for _, m := range r.Models {
		if s := m.Streaming; s != nil {
			line := fmt.Sprintf("%s: experts in host memory go to the GPU at %.1f GB/s, the CPU multiplies them by a row at %.1f GB/s: the GPU takes steps of ", m.Name, s.Link/1e9, s.CPU/1e9)
			if s.Rows == 0 {
				line += "no size"
			} else {
				line += fmt.Sprintf("%d rows and more", s.Rows)
			}
			lines = append(lines, line)
		}
		for _, res := range m.Results {
			if res.Reads != nil {
				lines = append(lines, fmt.Sprintf("%s, %s: of %s of experts that were chosen %.1f %% were in memory", m.Name, res.Test, report.BinarySize(res.Reads.Chosen), 100*res.Reads.HitRate))
			}
		}
	}
	return lines
}

func benchTable(w io.Writer, r *benchReport) error {
	p := &report.Printer{W: w}
	p.Table(benchNote(r), func(row func(...string)) {
		row(r.columns()...)
		for i := range r.Models {
			for _, res := range r.Models[i].Results {
				row(benchRow(r, &r.Models[i], res)...)
			}
		}
	})
	for _, line := range benchHostExperts(r) {
		if p.Err == nil {
			_, p.Err = fmt.Fprintln(w, line)
		}
	}
	for i := range r.Models {
		printFloors(p, &r.Models[i], r.Bandwidth)
	}
	return p.Err
}

func benchMarkdown(w io.Writer, r *benchReport) error {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(r.columns())
	line(slices.Repeat([]string{"---"}, len(r.columns())))
	for i := range r.Models {
		for _, res := range r.Models[i].Results {
			line(benchRow(r, &r.Models[i], res))
		}
	}
	b.WriteString("\n" + benchNote(r) + "\n")
	for _, line := range benchHostExperts(r) {
		b.WriteString("\n" + line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// benchCSV writes plain numbers, for spreadsheets.
func benchCSV(w io.Writer, r *benchReport) error {
	c := csv.NewWriter(w)
	rows := [][]string{{
		"version", "commit", "cpu", "threads", "memory_bandwidth", "kv_type", "ubatch_size", "model", "type", "device", "bytes", "active_bytes", "parameters",
		"test", "n_prompt", "n_gen", "n_depth", "n_parallel", "avg_ts", "stddev_ts", "bytes_per_token", "bandwidth",
		"n_draft", "draft_tokens", "draft_ms", "verify_ms", "rollback_ms",
		"tower_rows", "of_prefill",
	}}
	float := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	for _, m := range r.Models {
		for _, res := range m.Results {
			d, tower := cmp.Or(res.Drafts, &bench.Drafts{}), cmp.Or(res.Tower, &bench.Tower{})
			rows = append(rows, []string{
				r.Build.Version, r.Build.Commit, r.CPU, strconv.Itoa(r.Threads), float(r.Bandwidth), r.KVType, strconv.Itoa(r.UBatch),
				m.Name, m.Type, m.Device, strconv.FormatInt(m.Bytes, 10), strconv.FormatInt(m.Active, 10), strconv.FormatInt(m.Parameters, 10),
				res.Test, strconv.Itoa(res.Prompt), strconv.Itoa(res.Generate), strconv.Itoa(res.Depth), strconv.Itoa(res.Parallel),
				float(res.Mean), float(res.Spread), strconv.FormatInt(res.BytesPerToken, 10), float(res.Bandwidth),
				strconv.Itoa(res.Draft), float(d.Tokens), float(d.Draft), float(d.Verify), float(d.Rollback),
				strconv.Itoa(tower.Rows), float(tower.OfPrefill),
			})
		}
	}
	return c.WriteAll(rows)
}
