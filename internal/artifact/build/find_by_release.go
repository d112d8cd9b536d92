package build

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
)

// FindByRelease returns the builds of a release in the cache that have a program for a platform, each with
// only that binary. Those with the fewest plugins come first. Incomplete entries are skipped.
func FindByRelease(cacheDir, release, program string, platform Platform) []*Result {
	c := newCache(cacheDir)
	entries, err := os.ReadDir(filepath.Dir(c.binary("x")))
	if err != nil {
		return nil
	}
	var found []*Result
	for _, e := range entries {
		s, complete := c.describe(e.Name())
		if !complete || s.Info.Release != release || s.Binary.Program != program || s.Binary.Platform != platform {
			continue
		}
		if s, complete = c.load(e.Name()); complete {
			found = append(found, &Result{Info: s.Info, Binaries: []Binary{s.Binary}, Cached: true})
		}
	}
	slices.SortStableFunc(found, func(a, b *Result) int { return cmp.Compare(len(a.Info.Plugins), len(b.Info.Plugins)) })
	return found
}
