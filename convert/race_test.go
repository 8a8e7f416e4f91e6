//go:build race

package convert

// raceEnabled says that the race detector, which takes memory of its own, is on.
const raceEnabled = true
