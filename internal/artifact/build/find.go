package build

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// tagged is the record of the build in an image.
type tagged struct {
	Image    string          `json:"image"`
	Info     Info            `json:"info"`
	Binaries []string        `json:"binaries"`
	Recipe   v1alpha1.Recipe `json:"recipe,omitzero"`
}

func (c cache) tag(imageRef string) string { return c.fact("images", hash([]byte(imageRef))) }

// Tag records that the image with the given reference contains the binaries of r. A later record
// for the same reference replaces it. A build may be recorded for several references, such as a tag
// and a digest.
func Tag(cacheDir string, r *Result, imageRef string) error {
	if cacheDir == "" || imageRef == "" {
		return errors.New("record the build of an image: a build cache directory and a reference are required")
	}
	record := tagged{Image: imageRef, Info: r.Info, Recipe: r.Recipe}
	for _, b := range r.Binaries {
		record.Binaries = append(record.Binaries, b.Inputs)
	}
	if err := writeJSON(newCache(cacheDir).tag(imageRef), record); err != nil {
		return fmt.Errorf("record the build of image %s: %w", imageRef, err)
	}
	return nil
}

// FindByImage returns the build that was recorded last for an image reference, and whether there is
// one whose binaries are all in the cache.
func FindByImage(cacheDir, imageRef string) (*Result, bool, error) {
	c := newCache(cacheDir)
	var record tagged
	found, err := readJSON(c.tag(imageRef), &record)
	if err != nil {
		return nil, false, fmt.Errorf("look up the build of image %s: %w", imageRef, err)
	}
	if !found || record.Image != imageRef {
		return nil, false, nil
	}
	r := &Result{Info: record.Info, Cached: true, Recipe: record.Recipe}
	for _, key := range record.Binaries {
		s, complete := c.load(key)
		if !complete {
			return nil, false, nil
		}
		r.Binaries = append(r.Binaries, s.Binary)
	}
	return r, true, nil
}

// FindByRelease returns the builds of a release in the cache that have a program for a platform,
// each with only that binary. Those with the fewest plugins come first. Incomplete entries are
// skipped.
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
	slices.SortStableFunc(found,
		func(a, b *Result) int { return cmp.Compare(len(a.Info.Plugins), len(b.Info.Plugins)) })
	return found
}
