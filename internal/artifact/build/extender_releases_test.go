//go:build releases

package build

import (
	"os"
	"testing"
)

// A bundle has the modules of an extender: it is built in an empty build cache without a network.
func TestFetchedExtenderIsBuiltWithoutANetwork(t *testing.T) {
	o, _ := ownExtender(t)
	sum, err := os.ReadFile("../../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	o.GoSum = sum
	staged, err := Stage(t.Context(), Environment{CacheDir: t.TempDir(), Env: os.Environ()}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o.Environment = staged
	if err := FetchExtender(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := CompleteSums(t.Context(), staged); err != nil {
		t.Fatal(err)
	}
	o.CacheDir = unpackModules(t, staged.CacheDir)
	o.Env = append(os.Environ(), "GOPROXY=off")

	result, err := Extender(t.Context(), o)

	if err != nil || result.Cached || len(result.Binaries) != 1 {
		t.Errorf("without a network: %+v, %v", result, err)
	}
}
