package apply

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// RevisionStatus is the status of a revision.
type RevisionStatus string

// Statuses of a revision.
const (
	Pending  RevisionStatus = "pending"  // saved before the cluster is changed
	Deployed RevisionStatus = "deployed" // was stable
	Failed   RevisionStatus = "failed"
)

// Revision is one state of a scheduler, numbered from 1.
type Revision struct {
	Number      int            `json:"revision"`
	Name        string         `json:"name"`
	Namespace   string         `json:"namespace"`
	Status      RevisionStatus `json:"status"`
	Created     time.Time      `json:"created"`
	Description string         `json:"description,omitempty"` // release, image, …
	By          string         `json:"by,omitempty"`          // who deployed it, `root@node-1`
	// Verified is the time of the last proof that it binds pods. It is zero if there was none.
	Verified time.Time `json:"verified,omitzero"`
	// `rollback to revision 2`, or empty for deploy
	Origin  string                       `json:"origin,omitempty"`
	Reason  string                       `json:"reason,omitempty"` // why it failed
	Objects []*unstructured.Unstructured `json:"-"`                // as passed to Apply
	// the caller's own description, JSON; may have keys
	Record []byte `json:"-"`
	Damage error  `json:"-"` // why Objects could not be read
}

// A revision is a Secret of this type: its objects may have keys.
const revisionType corev1.SecretType = "pmk-sched.io/revision.v1"

const (
	revisionKey         = "objects.json.gz"
	recordKey           = "record.json.gz"
	labelRevisionStatus = "pmk-sched.io/revision-status"
	annotationText      = "pmk-sched.io/description"
	annotationBy        = "pmk-sched.io/deployed-by"
	annotationOrigin    = "pmk-sched.io/origin"
	annotationReason    = "pmk-sched.io/reason"
	annotationVerified  = "pmk-sched.io/verified"
	annotationWriter    = "pmk-sched.io/written-by"

	// maxReason bounds the annotation with the reason of a failure, in bytes.
	maxReason = 4096
	// maxObjects bounds the unpacked size of a revision, in bytes: something else may have written it.
	maxObjects = 64 << 20
)

// revisionName returns the name of the Secret of a revision.
func revisionName(name string, number int) string {
	return fmt.Sprintf("pmk-sched-%s-revision-%d", name, number)
}

// LastDeployed returns the newest revision with the status deployed, or nil.
func LastDeployed(revisions []*Revision) *Revision {
	for _, r := range slices.Backward(revisions) {
		if r.Status == Deployed {
			return r
		}
	}
	return nil
}

// encodeRevision returns the Secret of r. It fails if the objects do not fit.
func encodeRevision(r *Revision, writer string) (*corev1.Secret, error) {
	data, err := packObjects(r.Objects)
	if err != nil {
		return nil, fmt.Errorf("pack revision %d of %s: %w", r.Number, r.Name, err)
	}
	record, err := compress(r.Record)
	if err != nil {
		return nil, fmt.Errorf("pack revision %d of %s: %w", r.Number, r.Name, err)
	}
	if size := len(data) + len(record); size > corev1.MaxSecretSize {
		return nil, problem.Invalidf("make the scheduler configuration smaller",
			"objects of scheduler %s are too large to save for rollback: %d bytes compressed, the limit is %d", r.Name, size,
			corev1.MaxSecretSize)
	}
	labels := ownership.Labels(r.Name)
	labels[ownership.LabelRevision] = strconv.Itoa(r.Number)
	labels[labelRevisionStatus] = string(r.Status)
	annotations := map[string]string{annotationText: r.Description, annotationWriter: writer}
	for key, text := range map[string]string{annotationBy: r.By, annotationOrigin: r.Origin} {
		if text != "" {
			annotations[key] = text
		}
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: revisionName(r.Name, r.Number), Labels: labels, Annotations: annotations,
		},
		Type: revisionType,
		Data: map[string][]byte{revisionKey: data, recordKey: record},
	}, nil
}

// decodeRevision reads a Secret of encodeRevision. It returns an error if the revision cannot be
// identified. If only its objects are unreadable, Damage is the reason.
func decodeRevision(secret *corev1.Secret) (*Revision, error) {
	number, err := strconv.Atoi(secret.Labels[ownership.LabelRevision])
	if err != nil {
		return nil, fmt.Errorf("read revision of Secret/%s/%s: label %s: %w", secret.Namespace, secret.Name,
			ownership.LabelRevision, err)
	}
	r := &Revision{
		Number: number, Name: secret.Labels[ownership.LabelInstance], Namespace: secret.Namespace,
		Status: RevisionStatus(secret.Labels[labelRevisionStatus]), Created: secret.CreationTimestamp.Time,
		Description: secret.Annotations[annotationText], By: secret.Annotations[annotationBy],
		Origin: secret.Annotations[annotationOrigin], Reason: secret.Annotations[annotationReason],
	}
	if at, err := time.Parse(time.RFC3339, secret.Annotations[annotationVerified]); err == nil {
		r.Verified = at
	}
	objs, err := unpackObjects(secret.Data[revisionKey])
	if err == nil {
		err = checkObjects(objs, r.Name)
	}
	if packed := secret.Data[recordKey]; err == nil && packed != nil {
		r.Record, err = decompress(packed)
	}
	if err != nil {
		r.Damage = fmt.Errorf("read revision of Secret/%s/%s: %w", secret.Namespace, secret.Name, err)
		return r, nil
	}
	r.Objects = objs
	return r, nil
}

// checkObjects returns an error unless all objects are of the scheduler name. Every user who may
// write Secrets in the namespace can write a revision.
func checkObjects(objs []*unstructured.Unstructured, name string) error {
	for _, obj := range objs {
		if !ownership.Owns(obj.GetLabels(), name) {
			return fmt.Errorf("%s does not have the labels of the objects of %s", nameOf(obj), name)
		}
	}
	return nil
}

func packObjects(objs []*unstructured.Unstructured) ([]byte, error) {
	plainObjects := make([]map[string]any, len(objs))
	for i, obj := range objs {
		plainObjects[i] = obj.Object
	}
	text, err := json.Marshal(plainObjects)
	if err != nil {
		return nil, err
	}
	return compress(text)
}

func compress(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write(text)
	if err := errors.Join(err, zip.Close()); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func decompress(data []byte) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxObjects))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return text, nil
}

func unpackObjects(data []byte) ([]*unstructured.Unstructured, error) {
	text, err := decompress(data)
	if err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	objs := make([]*unstructured.Unstructured, len(raw))
	for i, one := range raw {
		objs[i] = &unstructured.Unstructured{}
		if err := objs[i].UnmarshalJSON(one); err != nil {
			return nil, fmt.Errorf("decode object %d: %w", i, err)
		}
	}
	return objs, nil
}
