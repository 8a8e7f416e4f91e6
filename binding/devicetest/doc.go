// Package devicetest has a device for tests of what two devices do together. As a GPU it
// has memory that the CPU can not read, and computes later than it is asked to: not before
// somebody waits for it. A scheduler or a graph that relies on more gets wrong results.
package devicetest
