package apply

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// repeated packs text, repeated up to a size in bytes, between a start and an end.
func repeated(t testing.TB, start, text, end string, size int) []byte {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	write := func(part string) {
		if _, err := zip.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	write(start)
	block := strings.Repeat(text, max(1, 1<<20/len(text)))
	for written := 0; written < size; written += len(block) {
		write(block)
	}
	write(end)
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// allocated returns how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// maxAllocated bounds the bytes that reading a revision allocates.
const maxAllocated = 64 << 20

// Users who may write Secrets in the namespace can write revisions.
func TestHostileRevisionTakesLittleMemory(t *testing.T) {
	none := repeated(t, "[", " ", "]", 1)
	for name, data := range map[string]map[string][]byte{
		"numbers":     {revisionKey: repeated(t, "[0", ",0", "]", 63<<20)},
		"objects":     {revisionKey: repeated(t, `[{"kind":"a"}`, `,{"kind":"a"}`, "]", 63<<20)},
		"nesting":     {revisionKey: repeated(t, `[{"kind":"a","b":`, "[", "", 63<<20)},
		"one object":  {revisionKey: repeated(t, `[{"kind":"a","b":[0`, ",0", "]}]", 7<<20)},
		"one text":    {revisionKey: repeated(t, `[{"kind":"a","b":"`, "a", `"}]`, 7<<20)},
		"blanks":      {revisionKey: repeated(t, "[", " ", "]", 63<<20)},
		"record":      {revisionKey: none, recordKey: repeated(t, `{"scheduler":{"PluginRules":[{}`, ",{}", "]}}", 63<<20)},
		"record text": {revisionKey: none, recordKey: repeated(t, `{"a":"`, "a", `"}`, 63<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{ownership.LabelInstance: "a"}},
				Type: revisionType, Data: data}
			var r *Revision
			took := allocated(func() { r = read(secret) })
			if r.Damage == nil || len(r.Objects)+len(r.Record) > 0 {
				t.Errorf("%d objects, damage %v", len(r.Objects), r.Damage)
			}
			if took > maxAllocated {
				t.Errorf("it took %d MiB, the limit is %d", took>>20, maxAllocated>>20)
			}
			t.Logf("%d KiB: %d KiB allocated, %v", len(data[revisionKey])>>10, took>>10, r.Damage)
		})
	}
}
