package conversion

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/versions"
)

// startup matches the error of a scheduler that has decoded and validated its configuration and
// cannot create the plugins.
var startup = regexp.MustCompile(
	`initializing profiles|couldn't create scheduler|(initializing|building) (plugin|scheduler)|creating profile`)

// The scheduler of a release accepts and rejects the documents that package profiles/validate has
// recorded for its decoder.
func TestDecodersAcceptWhatIsRecorded(t *testing.T) {
	text, err := os.ReadFile("../../../profiles/validate/testdata/decoders.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []struct {
		Name, Document string
		Accepted       map[string]string
	}
	if err := yaml.UnmarshalStrict(text, &recorded); err != nil || len(recorded) == 0 {
		t.Fatalf("%d documents: %v", len(recorded), err)
	}
	for _, release := range versions.Releases() {
		if !asked(release) {
			continue
		}
		t.Run(release.String(), func(t *testing.T) {
			scheduler := schedulerOf(t, release)
			group, ctx := errgroup.WithContext(t.Context())
			group.SetLimit(atOnce)
			for _, r := range recorded {
				for _, api := range []string{"v1beta1", "v1beta2", "v1beta3", "v1"} {
					first, last := 0, -1
					if minors := r.Accepted[api]; minors != "" {
						if _, err := fmt.Sscanf(minors, "%d-%d", &first, &last); err != nil {
							t.Fatalf("%s: %q: %v", r.Name, minors, err)
						}
					}
					config := "apiVersion: kubescheduler.config.k8s.io/" + api + "\nkind: KubeSchedulerConfiguration\n" + r.Document +
						"\n"
					group.Go(func() error {
						_, err := scheduler.Read(ctx, []byte(config))
						accepted := err == nil || startup.MatchString(err.Error())
						if want := first <= release.Minor && release.Minor <= last; accepted != want {
							t.Errorf("%s in %s: recorded as accepted: %v; the scheduler: %v", r.Name, api, want, err)
						}
						return nil
					})
				}
			}
			if err := group.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
