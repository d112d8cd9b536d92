package apply

import (
	"bytes"
	"compress/gzip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// FuzzDecodeRevision searches revision Secrets that crash the decoder, take too much memory, or
// whose objects cannot be stored again. Users who may write Secrets in the namespace can write
// them.
func FuzzDecodeRevision(f *testing.F) {
	for _, text := range []string{
		`[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"app.kubernetes.io/managed-by":"pmk-sched","app.kubernetes.io/instance":"a"}},"data":{"a":"b"}}]`, `[]`, `[null]`, `{}`, `[{"kind":"List","items":[{}]}]`} {
		f.Add("3", []byte(text), true)
	}
	f.Add("x", []byte("not compressed"), false)
	f.Fuzz(func(t *testing.T, number string, text []byte, compress bool) {
		if compress {
			var packed bytes.Buffer
			zip := gzip.NewWriter(&packed)
			if _, err := zip.Write(text); err != nil {
				t.Fatal(err)
			}
			if err := zip.Close(); err != nil {
				t.Fatal(err)
			}
			text = packed.Bytes()
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "pmk-sched-a-revision-" + number, Namespace: "n", Labels: map[string]string{
				ownership.LabelRevision: number, ownership.LabelManagedBy: ownership.Manager, ownership.LabelInstance: "a",
			}},
			Type: revisionType, Data: map[string][]byte{revisionKey: text, recordKey: text},
		}
		n, ok := revisionNumber(secret, "a")
		var r *Revision
		if took := allocated(func() { r = decodeRevision(describeRevision(secret, n), secret) }); took > maxAllocated {
			t.Fatalf("%d bytes take %d", len(text), took)
		}
		if !ok || r.Damage != nil {
			return
		}
		for _, o := range r.Objects {
			if o.GetKind() == "" || !ownership.Owns(o.GetLabels(), "a") {
				t.Fatalf("an object has no kind, or is not of the scheduler: %v", o.Object)
			}
		}
		if _, err := encodeRevision(r, "test"); err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
	})
}
