package server

// openAIRoutes are those of OpenAI's API.
func (s *Server) openAIRoutes() []route { return nil }
