package bench

import (
	"os"
	"testing"

	"github.com/inkling-go/inkling/internal/tinymodel"
)

func TestMain(m *testing.M) { os.Exit(tinymodel.Main(m)) }
