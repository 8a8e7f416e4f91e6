package server

import "time"

type metrics struct{}

func (m *metrics) firstToken(model string, d time.Duration)          {}
func (m *metrics) nextToken(model string, d time.Duration)           {}
func (m *metrics) answered(model string, a *answer)                  {}
func (m *metrics) request(route string, status int, d time.Duration) {}
