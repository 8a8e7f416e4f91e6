package store

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// variant is one GGUF model among the files of a folder or a repository: a whole
// file, or the parts of a split one.
type variant struct {
	stem  string   // path without part number and .gguf
	quant string   // as the name has it, in upper case; may be empty
	count int      // of its parts
	parts []string // paths of those that are there, in order
}

// chosen are the paths of the files that make a model.
type chosen struct {
	model       []string // the parts in order
	mmproj, mtp string   // empty if there is none
}

var (
	partName  = regexp.MustCompile(`(?i)-(\d{5})-of-(\d{5})\.gguf$`)
	quantName = regexp.MustCompile(`(?i)(?:^|[-._/])((?:UD-)?(?:I?Q\d+(?:_[0-9A-Z]+)*|TQ\d_\d|BF16|FP?16|F(?:P)?32|MXFP4(?:_[A-Z]+)*|NVFP4))$`)
)

// defaultQuants are taken if none is named, the first that is there, as
// llama.cpp and Ollama do.
var defaultQuants = []string{"Q4_K_M", "UD-Q4_K_M", "Q8_0"}

// companionQuants are the types of projectors, the preferred ones first: the
// published type, and what loses least.
var companionQuants = []string{"", "BF16", "F16", "FP16", "F32", "FP32", "Q8_0"}

// variants sorts GGUF files into models, projectors and files for multi-token
// prediction.
func variants(paths []string) (models, mmprojs, mtps []variant) {
	index := map[string]int{}
	var all []variant
	for _, p := range paths {
		if !strings.EqualFold(path.Ext(p), ".gguf") || strings.Contains(strings.ToLower(path.Base(p)), "imatrix") {
			continue
		}
		stem, no, count := p[:len(p)-len(".gguf")], 1, 1
		if m := partName.FindStringSubmatch(p); m != nil {
			no, _ = strconv.Atoi(m[1])
			count, _ = strconv.Atoi(m[2])
			stem = p[:len(p)-len(m[0])]
		}
		if no < 1 || no > count {
			continue
		}
		key := fmt.Sprintf("%s %d", stem, count)
		i, ok := index[key]
		if !ok {
			i = len(all)
			index[key] = i
			all = append(all, variant{stem: stem, quant: quantOf(stem), count: count})
		}
		all[i].parts = append(all[i].parts, p)
	}
	for _, v := range all {
		slices.Sort(v.parts) // their names differ in the number alone
	}
	slices.SortFunc(all, func(a, b variant) int { return strings.Compare(a.stem, b.stem) })
	for _, v := range all {
		switch base := strings.ToLower(path.Base(v.stem)); {
		case strings.Contains(base, "mmproj"):
			mmprojs = append(mmprojs, v)
		case strings.HasPrefix(base, "mtp-") || base == "mtp":
			mtps = append(mtps, v)
		default:
			models = append(models, v)
		}
	}
	return models, mmprojs, mtps
}

// quantOf is the type that a file's name ends in, or its folder's name is.
func quantOf(stem string) string {
	for s := stem; s != "." && s != "/" && s != ""; s = path.Dir(s) {
		if m := quantName.FindStringSubmatch(s); m != nil {
			return strings.ToUpper(m[1])
		}
	}
	return ""
}

// QuantError is a repository or folder without the quantisation that was asked
// for, or with several models of which none was named.
type QuantError struct {
	Source    string
	Want      string // empty: none was named
	Available []string
}

func (e *QuantError) Error() string {
	there := "there is " + strings.Join(e.Available, ", ")
	if e.Want == "" {
		return fmt.Sprintf("%s: which of its models is not clear; %s", e.Source, there)
	}
	return fmt.Sprintf("%s: no GGUF file of type or name %s; %s", e.Source, e.Want, there)
}

// choose picks a model from the paths of a source by its type or its name, with
// what belongs to it. With tag "" or latest it takes a type of moderate size.
func choose(source, tag string, paths []string) (chosen, error) {
	models, mmprojs, mtps := variants(paths)
	if len(models) == 0 {
		return chosen{}, fmt.Errorf("%s: no GGUF file of a model", source)
	}
	v, err := chooseModel(source, tag, models)
	if err != nil {
		return chosen{}, err
	}
	return v.with(source, mmprojs, mtps)
}

// chooseFile is choose for one file of a folder. A file whose name says nothing
// stands alone.
func chooseFile(dir, name string, paths []string) (chosen, error) {
	models, mmprojs, mtps := variants(paths)
	for _, v := range models {
		if slices.Contains(v.parts, name) {
			return v.with(dir, mmprojs, mtps)
		}
	}
	return chosen{model: []string{name}}, nil
}

// with adds what belongs to a model, which must be complete.
func (v variant) with(source string, mmprojs, mtps []variant) (chosen, error) {
	if len(v.parts) != v.count {
		return chosen{}, fmt.Errorf("%s: %s is split, and part %d of %d is missing", source, v.stem, v.firstMissing(), v.count)
	}
	return chosen{
		model:  v.parts,
		mmproj: companion(v, mmprojs, companionQuants),
		mtp:    companion(v, mtps, append([]string{v.quant}, companionQuants...)),
	}, nil
}

// firstMissing is the number of the first part that is not there.
func (v variant) firstMissing() int {
	for i, p := range v.parts {
		if m := partName.FindStringSubmatch(p); m != nil && m[1] != fmt.Sprintf("%05d", i+1) {
			return i + 1
		}
	}
	return len(v.parts) + 1
}

func chooseModel(source, tag string, models []variant) (variant, error) {
	if tag == "" || strings.EqualFold(tag, defaultTag) {
		for _, q := range defaultQuants {
			if i := slices.IndexFunc(models, func(v variant) bool { return v.quant == q }); i >= 0 {
				return models[i], nil
			}
		}
		return models[0], nil
	}
	tag = strings.TrimSuffix(strings.ToUpper(tag), ".GGUF")
	for _, is := range []func(v variant) bool{
		func(v variant) bool { return v.quant == tag },
		func(v variant) bool { return v.quant == "UD-"+tag },
		func(v variant) bool { return strings.ToUpper(path.Base(v.stem)) == tag },
	} {
		if i := slices.IndexFunc(models, is); i >= 0 {
			return models[i], nil
		}
	}
	return variant{}, &QuantError{Source: source, Want: tag, Available: available(models)}
}

// available lists what models can be asked for by.
func available(models []variant) []string {
	var names []string
	for _, v := range models {
		name := cmp.Or(v.quant, path.Base(v.stem))
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// companion picks the file that goes with a model: one of the same folder and
// stem before others, then by the preference of types.
func companion(model variant, files []variant, quants []string) string {
	best, bestRank := "", [3]int{}
	for _, v := range files {
		if v.count != 1 {
			continue
		}
		relation := related(path.Base(v.stem), v.quant, path.Base(model.stem))
		if relation < 0 {
			continue
		}
		rank := [3]int{relation, slices.Index(quants, v.quant), 0}
		if rank[1] < 0 {
			rank[1] = len(quants)
		}
		if path.Dir(v.stem) != path.Dir(model.stem) {
			rank[2] = 1
		}
		if best == "" || slices.Compare(rank[:], bestRank[:]) < 0 {
			best, bestRank = v.parts[0], rank
		}
	}
	return best
}

// related says how a companion's name is related to the model's: 0 the same name,
// 1 without its type the beginning of it, or saying nothing, -1 not at all.
func related(name, quant, model string) int {
	lower := strings.ToLower(name)
	model = strings.ToLower(model)
	for _, kind := range []string{"mmproj", "mtp"} {
		lower = strings.TrimPrefix(strings.TrimPrefix(lower, kind), "-")
		lower = strings.TrimSuffix(strings.TrimSuffix(lower, kind), "-") // NAME-mmproj is seen as well
	}
	if lower == model {
		return 0
	}
	stem := strings.TrimRight(strings.TrimSuffix(lower, strings.ToLower(quant)), "-._")
	for _, kind := range []string{"-mmproj", ".mmproj"} {
		stem = strings.TrimSuffix(stem, kind)
	}
	if stem == "" || stem == "model" || strings.HasPrefix(model, stem) {
		return 1
	}
	return -1
}
