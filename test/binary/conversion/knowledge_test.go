package conversion

import (
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/documents"
	"github.com/pmk-sched/pmk-sched/versions"
)

// profiles.Validate accepts a document exactly if the release's own scheduler does: documents of
// every config API, most of which are refused.
func TestValidateAgreesWithTheScheduler(t *testing.T) {
	known := read(t)
	for _, release := range versions.Releases() {
		if !asked(release) {
			continue
		}
		t.Run(release.String(), func(t *testing.T) {
			scheduler := schedulerOf(t, release)
			all := known
			for _, api := range documents.APIs(scheduler.Rules) {
				for seed := range uint64(generated) {
					all = append(all[:len(all):len(all)], documents.Generate(api, release.Minor, seed))
				}
			}
			group, ctx := errgroup.WithContext(t.Context())
			group.SetLimit(atOnce)
			for _, d := range all {
				group.Go(func() error {
					v, err := profiles.Validate(profiles.ValidateRequest{Release: release, Source: d.Text, SourceName: d.Name})
					if err != nil {
						t.Errorf("%s: %v", d.Name, err)
						return nil
					}
					_, refused := scheduler.Read(ctx, d.Text)
					if v.Valid() != (refused == nil) {
						t.Errorf("%s: the scheduler says %v, and pmk-sched knows of %v\n%s", d.Name, refused, v.Problems, d.Text)
					}
					return nil
				})
			}
			if err := group.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
