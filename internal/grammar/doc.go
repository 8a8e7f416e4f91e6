// Package grammar constrains what a model may write: a JSON schema, a regular
// expression or a GBNF grammar becomes an automaton over bytes, and the automaton
// becomes, before each token, the set of tokens that may follow.
//
// # From a grammar to an automaton
//
// A front end (schema*.go, regex.go, gbnf.go) writes rules: regular expressions
// over bytes that may call each other (expr.go). Each rule becomes a deterministic
// automaton, by Thompson's construction and the subset construction, in which a
// call is one more kind of edge: a recursive transition network (Woods 1970).
// Characters are UTF-8 sequences of byte ranges, so a token may end inside of one.
// What cannot be finished is cut off at compile time: whatever a matcher accepts
// can be completed.
//
// # The state of an answer
//
// A place is a state and a frame, the stack of places that its rule returns to. An
// answer is in a set of places at once, since a grammar may be ambiguous. Frames
// share their callers as in a graph-structured stack (Tomita 1985): a rule that
// several places call at one position has one frame there, which keeps the work
// polynomial where a list of stacks would double with each choice. Frames and sets
// are interned by content, so that equal states are pointers to one set, and sets
// keep their successors by byte: a deterministic automaton built as it is needed
// (machine.go). A call with which its rule ends leaves no frame.
//
// Strings with bounds on their length do not have a state for each length: the
// frame counts characters down, on edges that are marked (jsontext.go).
//
// # From a state to a set of tokens
//
// The vocabulary is a trie in preorder, walked with the automaton; a prefix that
// is not accepted takes its subtree with it (tokens.go). Even so a string admits
// nearly all of the vocabulary. But what a token does within a rule does not
// depend on the stack: of each state the tokens that stay within its rule are
// found once, and with them the prefixes that leave it, a few thousand in a string
// (profile, mask.go). Only behind those is the walk done for each stack. The
// finished mask stays with its set: inside a string the set is the same from byte
// to byte, and the mask is there already.
//
// Tries of the vocabulary and cached masks per state follow Willard and Louf,
// Efficient Guided Generation for Large Language Models (2023); the split into
// tokens that do and do not depend on the stack follows Dong et al., XGrammar
// (2024). The schema to grammar mapping and GBNF follow llama.cpp.
package grammar
