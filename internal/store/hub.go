package store

// journalSuffix ends the name of the file that says which parts of a partial one
// are there.
const journalSuffix = ".json"

// hub is a server with the interface of the Hugging Face Hub.
type hub struct{ endpoint, token string }

func hubFromEnvironment() hub { return hub{} }
