package binding

// #include "bridge.h"
import "C"

import (
	"context"
	"log/slog"
	"strings"
)

func init() { C.inkling_log_start(C.GGML_LOG_LEVEL_WARN) }

// LogLevel sets the least severe level of ggml's own messages that reach
// slog.Default. The default is slog.LevelWarn.
func LogLevel(l slog.Level) {
	min := C.GGML_LOG_LEVEL_WARN
	switch {
	case l < slog.LevelInfo:
		min = C.GGML_LOG_LEVEL_DEBUG
	case l < slog.LevelWarn:
		min = C.GGML_LOG_LEVEL_INFO
	case l >= slog.LevelError:
		min = C.GGML_LOG_LEVEL_ERROR
	}
	C.inkling_log_start(C.int(min))
}

//export inklingLog
func inklingLog(level C.int, text *C.char) {
	l := slog.LevelInfo
	switch level {
	case C.GGML_LOG_LEVEL_DEBUG:
		l = slog.LevelDebug
	case C.GGML_LOG_LEVEL_WARN:
		l = slog.LevelWarn
	case C.GGML_LOG_LEVEL_ERROR:
		l = slog.LevelError
	}
	if msg := strings.TrimSpace(C.GoString(text)); msg != "" {
		slog.Log(context.Background(), l, "ggml: "+msg)
	}
}
