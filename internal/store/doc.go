// Package store keeps models by name in a folder of the user: which files a model
// is made of, the settings it runs with, and what it says to begin with.
//
// The folder, ~/.inkling unless INKLING_HOME names another, has
//
//	blobs/sha256-HEX                         a file of a model, under the hash of its content
//	blobs/sha256-HEX.partial                 one that is being fetched, with sha256-HEX.json beside it
//	manifests/HOST/NAMESPACE/REPO/TAG        JSON: the files of a model and its settings
//	models/HOST/NAMESPACE/REPO/TAG/ID/*.gguf hard links to the blobs under readable names
//	work/*                                   folders of commands at work
//	lock                                     what the processes wait for each other by
//
// A blob is complete or has another name; a manifest is replaced as a whole, after
// its blobs are there. What a process leaves that was killed is therefore never a
// broken model, only files that nothing refers to, which [Store.GC] removes. The
// models folder repeats what the manifests say and is made again where it is wrong.
//
// Blobs in use by a process that has not committed yet are held by a shared lock
// on the file itself, which ends with the process; the collection leaves them.
// The store's lock is held exclusively while a manifest changes or a collection
// runs, and shared while blobs are taken in; never while data moves.
package store
