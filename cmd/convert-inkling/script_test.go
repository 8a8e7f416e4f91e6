package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/inkling-go/inkling/internal/safetensors"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"convert-inkling": main})
}

// TestScripts runs testdata/script. The scripts find the checkpoints for tests in
// $TESTDATA, and have commands of their own:
//
//	status N CMD ARGS...     run a command that must end with this exit status
//	replace FILE OLD NEW     replace the one occurrence of a text
//	poke FILE OFFSET HEX     overwrite bytes; an offset below 0 counts from the end
//	cut FILE N               take N bytes off the end
//	huge DIR                 make a checkpoint of 4.5 GB that takes no disk
//	await FILE N             wait until N MB of a file are on the disk
//	partial DIR              a folder with files, all of which are called *.partial
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TESTDATA", root)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": status, "replace": replace, "poke": poke, "cut": cut, "huge": huge, "await": await, "partial": partial,
		},
	})
}

func status(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func replace(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if strings.Count(text, args[1]) != 1 {
		ts.Fatalf("%s has %d times %q, want once", args[0], strings.Count(text, args[1]), args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o666))
}

func poke(ts *testscript.TestScript, _ bool, args []string) {
	data := []byte(ts.ReadFile(args[0]))
	off, err := strconv.Atoi(args[1])
	ts.Check(err)
	if off < 0 {
		off += len(data)
	}
	for i := 0; i < len(args[2]); i += 2 {
		b, err := strconv.ParseUint(args[2][i:i+2], 16, 8)
		ts.Check(err)
		data[off+i/2] = byte(b)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o666))
}

func cut(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(len(ts.ReadFile(args[0]))-n)))
}

// huge writes the checkpoint inkling-tiny-random with many more experts; the
// weights are one hole in a file.
func huge(ts *testscript.TestScript, _ bool, args []string) {
	const experts = 16384
	src := filepath.Join(ts.Getenv("TESTDATA"), "inkling-tiny-random/original")
	dir := ts.MkAbs(args[0])
	ts.Check(os.Mkdir(dir, 0o777))
	ts.Check(os.Link(filepath.Join(src, "tokenizer.json"), filepath.Join(dir, "tokenizer.json")))
	config, err := os.ReadFile(filepath.Join(src, "config.json"))
	ts.Check(err)
	config = []byte(strings.Replace(string(config), `"n_routed_experts": 8`, `"n_routed_experts": `+strconv.Itoa(experts), 1))
	ts.Check(os.WriteFile(filepath.Join(dir, "config.json"), config, 0o666))

	ckpt, err := safetensors.OpenDir(src)
	ts.Check(err)
	defer ckpt.Close()
	header := make(map[string]any)
	end := int64(0)
	for _, name := range ckpt.Names() {
		x, _ := ckpt.Tensor(name)
		switch {
		case strings.Contains(name, ".mlp.experts."), strings.HasSuffix(name, ".gate.bias"):
			x.Shape[0] = experts
		case strings.HasSuffix(name, ".gate.weight"):
			x.Shape[0] += experts - 8
		}
		start := end
		end += x.Elems() * int64(x.DType.Bits()/8)
		header[name] = map[string]any{"dtype": x.DType, "shape": x.Shape, "data_offsets": []int64{start, end}}
	}
	text, err := json.Marshal(header)
	ts.Check(err)
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	path := filepath.Join(dir, "model.safetensors")
	ts.Check(os.WriteFile(path, data, 0o666))
	ts.Check(os.Truncate(path, int64(len(data))+end))
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	mb, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	for range 1000 {
		if st, err := os.Stat(ts.MkAbs(args[0])); err == nil && st.Sys().(*syscall.Stat_t).Blocks*512 >= mb*1e6 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s has not %d MB after 10 s", args[0], mb)
}

func partial(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(entries) == 0 {
		ts.Fatalf("%s is empty", args[0])
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".partial") {
			ts.Fatalf("%s is left in %s", e.Name(), args[0])
		}
	}
}
