// Package conversion compares documents with their conversions by profiles.Convert in the
// schedulers of the releases: if a release reads both config APIs, both documents must have the
// same effect.
package conversion

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/documents"
	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
	"github.com/pmk-sched/pmk-sched/versions"
)

// atOnce is how many schedulers run at a time.
const atOnce = 4

// The release's own binary accepts a document and its conversion. It writes the same text for both
// (--write-config-to), or, if the config APIs express the same setting differently, its framework
// runs the same plugins with the same settings.
func TestDocumentsKeepTheirMeaning(t *testing.T) {
	known := read(t)
	for _, release := range releases(t) {
		t.Run(release.String(), func(t *testing.T) {
			c := newComparison(t, release)
			group, ctx := errgroup.WithContext(t.Context())
			group.SetLimit(atOnce)
			for _, api := range documents.APIs(c.scheduler.Rules) {
				all := slices.DeleteFunc(slices.Clone(known), func(d documents.Document) bool {
					return d.API != api || !d.ReadBy(release, c.scheduler.Rules)
				})
				for seed := range uint64(generated) {
					all = append(all, documents.Generate(api, release.Minor, seed))
				}
				for _, d := range all {
					group.Go(func() error { c.document(ctx, d); return nil })
				}
			}
			if err := group.Wait(); err != nil {
				t.Error(err)
			}
			c.compareEffects(t.Context())
			t.Log(c.summary())
		})
	}
}

func read(t testing.TB) []documents.Document {
	t.Helper()
	known, err := documents.Read("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// comparison compares documents with their conversions in one release, and counts.
type comparison struct {
	t         testing.TB
	scheduler *schedulers.Scheduler

	mu                                        sync.Mutex
	pending                                   []pair
	documents, text, effect, differs, refused int
}

// pair is a document and its conversion, which the scheduler writes out as different texts.
type pair struct {
	what      string
	document  documents.Document
	api       string
	converted *profiles.Converted
}

func newComparison(t testing.TB, release versions.Release) *comparison {
	t.Helper()
	return &comparison{t: t, scheduler: schedulerOf(t, release)}
}

func (c *comparison) count(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

func (c *comparison) summary() string {
	return fmt.Sprintf(
		"%s: %d documents; of their conversions %d are written out as the same text, %d have the same effect, %d differ as "+
			"expected, %d cannot be converted without losses",
		c.scheduler.Release, c.documents, c.text, c.effect, c.differs, c.refused)
}

// document converts one document to every other config API of the release.
func (c *comparison) document(ctx context.Context, d documents.Document) {
	written, err := c.scheduler.Read(ctx, d.Text)
	if err != nil {
		c.t.Errorf("%s: the release does not accept the document: %v\n%s", d.Name, err, d.Text)
		return
	}
	c.count(&c.documents)
	for _, api := range documents.APIs(c.scheduler.Rules) {
		if api != d.API {
			c.conversion(ctx, d, api, written)
		}
	}
}

func (c *comparison) conversion(ctx context.Context, d documents.Document, api, written string) {
	release := c.scheduler.Release
	what := fmt.Sprintf("%s: to %s as %s reads it", d.Name, api, release)
	lossy := d.Lossy(api, release)
	converted, err := profiles.Convert(profiles.ConvertRequest{API: api, Release: release, Source: d.Text,
		SourceName: d.Name})
	switch {
	case err != nil && !lossy:
		c.t.Errorf("%s: %v\n%s", what, err, d.Text)
		return
	case err == nil && lossy:
		c.t.Errorf("%s: converted without losses, but the document is marked as lossy", what)
		return
	case lossy:
		c.lossy(ctx, d, api, what)
		return
	}
	again, err := c.scheduler.Read(ctx, converted.YAML)
	if err != nil {
		c.t.Errorf("%s: the release does not accept it: %v\n%s", what, err, converted.YAML)
		return
	}
	if withoutAPI(written) == withoutAPI(again) {
		c.count(&c.text)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, pair{what, d, api, converted})
}

// compareEffects compares the effects of the pairs: they are the same, unless the document is
// marked as different.
func (c *comparison) compareEffects(ctx context.Context) {
	var texts [][]byte
	for _, p := range c.pending {
		texts = append(texts, p.document.Text, p.converted.YAML)
	}
	outcomes, err := c.scheduler.Effects(ctx, texts...)
	if err != nil {
		c.t.Error(err)
		return
	}
	for i, p := range c.pending {
		c.compare(p, outcomes[2*i], outcomes[2*i+1])
	}
	c.pending = nil
}

func (c *comparison) compare(p pair, before, after schedulers.Outcome) {
	d, converted := p.document, p.converted
	if err := errors.Join(before.Err, after.Err); err != nil {
		c.t.Errorf("%s: effect of the document or the conversion: %v", p.what, err)
		return
	}
	if len(after.Effect.Twice) > 0 {
		c.t.Errorf("%s: these would run twice: %q\nDOCUMENT\n%s\nCONVERSION\n%s", p.what, after.Effect.Twice, d.Text,
			converted.YAML)
		return
	}
	if d.Differs(p.api, c.scheduler.Release) {
		if before.Effect.Text == after.Effect.Text || len(converted.Notes) == 0 {
			c.t.Errorf("%s: want a different effect and a note", p.what)
		}
		c.count(&c.differs)
		return
	}
	if diff := cmp.Diff(withoutAvoidPods(before.Effect.Text, converted.Notes), after.Effect.Text); diff != "" {
		c.t.Errorf("%s: another effect:\n%s\nDOCUMENT\n%s\nCONVERSION\n%s", p.what, diff, d.Text, converted.YAML)
		return
	}
	c.count(&c.effect)
}

// lossy converts with losses: each loss is reported, and the rest is accepted.
func (c *comparison) lossy(ctx context.Context, d documents.Document, api, what string) {
	converted, err := profiles.Convert(profiles.ConvertRequest{API: api, Release: c.scheduler.Release, Source: d.Text,
		SourceName: d.Name, Lossy: true})
	if err != nil {
		c.t.Errorf("%s, with losses: %v", what, err)
		return
	}
	if !slices.ContainsFunc(converted.Notes, func(n profiles.Note) bool { return n.Loss }) {
		c.t.Errorf("%s, with losses: no loss is reported", what)
	}
	if _, err := c.scheduler.Read(ctx, converted.YAML); err != nil {
		c.t.Errorf("%s, with losses: the release does not accept it: %v\n%s", what, err, converted.YAML)
	}
	c.count(&c.refused)
}

// withoutAvoidPods removes NodePreferAvoidPods from an effect if a note reports its removal: a
// default of v1beta1 which v1beta2 refuses, and which nothing takes the place of.
func withoutAvoidPods(effect string, notes []profiles.Note) string {
	if !slices.ContainsFunc(notes,
		func(n profiles.Note) bool { return strings.Contains(n.Message, "NodePreferAvoidPods") }) {
		return effect
	}
	return regexp.MustCompile(` *"NodePreferAvoidPods 10000",\n`).ReplaceAllString(effect, "")
}

// withoutAPI removes the name of the config API from a text.
func withoutAPI(text string) string {
	return regexp.MustCompile(`kubescheduler\.config\.k8s\.io/v1\w*`).ReplaceAllString(text, "")
}
