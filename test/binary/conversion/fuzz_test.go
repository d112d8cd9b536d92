package conversion

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/documents"
)

// FuzzGeneratedDocumentsKeepTheirMeaning continues after the fixed seeds of
// TestDocumentsKeepTheirMeaning:
//
//	go test -fuzz Generated ./test/binary/conversion
func FuzzGeneratedDocumentsKeepTheirMeaning(f *testing.F) {
	f.Add(uint64(1000), uint8(0))
	f.Add(uint64(1001), uint8(1))
	chosen := releases(f)[0]
	c := newComparison(f, chosen)
	apis := documents.APIs(c.scheduler.Rules)
	f.Fuzz(func(t *testing.T, seed uint64, api uint8) {
		// The scheduler is built once; failures are reported for this seed.
		one := &comparison{t: t, scheduler: c.scheduler}
		one.document(t.Context(), documents.Generate(apis[int(api)%len(apis)], chosen.Minor, seed))
		one.compareEffects(t.Context())
	})
}
