// Package grammar constrains what a model may write: a JSON schema, a regular
// expression or a GBNF grammar becomes an automaton over bytes, and the automaton
// becomes, before each token, the set of tokens that may follow.
package grammar
