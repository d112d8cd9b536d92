package apply

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// RevisionStatus is a revision's status.
type RevisionStatus string

// Revision statuses.
const (
	Pending  RevisionStatus = "pending"  // saved before the cluster is changed
	Deployed RevisionStatus = "deployed" // was stable
	Failed   RevisionStatus = "failed"
)

// RevisionInfo describes one state of a scheduler, numbered from 1, without its objects.
type RevisionInfo struct {
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
	Origin string `json:"origin,omitempty"`
	Reason string `json:"reason,omitempty"` // why it failed
}

// Revision is one state of a scheduler with its objects.
type Revision struct {
	RevisionInfo
	Objects []*unstructured.Unstructured // as passed to Apply
	// the caller's own description, JSON; may have keys
	Record []byte
	Damage error // why Objects could not be read
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

	// maxText bounds an annotation's text, in bytes.
	maxText = 4096
	// maxNumber is the highest revision number.
	maxNumber = 1_000_000
)

// revisionName returns the name of a revision's Secret.
func revisionName(name string, number int) string {
	return fmt.Sprintf("pmk-sched-%s-revision-%d", name, number)
}

// LastDeployed returns the newest revision with the status deployed, or nil. revisions are oldest
// first.
func LastDeployed(revisions []RevisionInfo) *RevisionInfo {
	for i := range slices.Backward(revisions) {
		if revisions[i].Status == Deployed {
			return &revisions[i]
		}
	}
	return nil
}

// encodeRevision returns the Secret for r. It fails if the objects or the record do not fit, or if
// [decodeRevision] would not read them.
func encodeRevision(r *Revision, writer string) (*corev1.Secret, error) {
	const smaller = "make the scheduler configuration smaller"
	data, err := packObjects(r.Objects)
	if err != nil {
		return nil, problem.Invalidf(smaller, "objects of scheduler %s are too large to save for rollback: %w", r.Name, err)
	}
	record, err := compress(r.Record)
	if err != nil {
		return nil, problem.Invalidf("make the file of the scheduler and the sources of its plugins smaller",
			"record of scheduler %s is too large to save for rollback: %w", r.Name, err)
	}
	if size := len(data) + len(record); size > corev1.MaxSecretSize {
		return nil, problem.Invalidf(smaller,
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

// revisionNumber returns the revision number in the Secret with this metadata. ok is false if the
// metadata does not belong to that scheduler's revision.
func revisionNumber(secret metav1.Object, name string) (number int, ok bool) {
	number, err := strconv.Atoi(secret.GetLabels()[ownership.LabelRevision])
	return number, err == nil && number > 0 && number <= maxNumber && secret.GetName() == revisionName(name, number)
}

// describeRevision reads the metadata in a Secret from encodeRevision.
func describeRevision(secret metav1.Object, number int) RevisionInfo {
	labels, annotations := secret.GetLabels(), secret.GetAnnotations()
	info := RevisionInfo{
		Number: number, Name: labels[ownership.LabelInstance], Namespace: secret.GetNamespace(),
		Status: RevisionStatus(labels[labelRevisionStatus]), Created: secret.GetCreationTimestamp().Time,
		Description: bounded(annotations[annotationText]), By: bounded(annotations[annotationBy]),
		Origin: bounded(annotations[annotationOrigin]), Reason: bounded(annotations[annotationReason]),
	}
	if at, err := time.Parse(time.RFC3339, annotations[annotationVerified]); err == nil {
		info.Verified = at
	}
	return info
}

// bounded returns a copy of a text, at most its first 4 KiB.
func bounded(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return strings.Clone(text)
}

// decodeRevision reads a Secret from encodeRevision. If its objects or its record cannot be read,
// Damage is the reason.
func decodeRevision(info RevisionInfo, secret *corev1.Secret) *Revision {
	r := &Revision{RevisionInfo: info}
	objs, err := unpackObjects(secret.Data[revisionKey])
	if err == nil {
		err = CheckObjects(objs, info.Namespace, info.Name)
	}
	var record []byte
	if packed := secret.Data[recordKey]; err == nil && packed != nil {
		record, err = decompress(packed)
	}
	if secret.Type != revisionType {
		err = fmt.Errorf("its type is %.100q", secret.Type)
	}
	if err != nil {
		r.Damage = fmt.Errorf("read revision of Secret/%s/%s: %w", info.Namespace, revisionName(info.Name, info.Number), err)
		return r
	}
	r.Objects, r.Record = objs, record
	return r
}
