package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"
)

// volumes binds claims as the volume controllers do: to the volume that the scheduler has reserved
// for a claim, or to a new one for the node that it has selected. Claims that do not wait for a pod
// are left alone: whether they are bound is not the scheduler's decision.
type volumes struct {
	kube        kubernetes.Interface
	claims      corelisters.PersistentVolumeClaimLister
	volumes     corelisters.PersistentVolumeLister
	nodes       corelisters.NodeLister
	classes     storagelisters.StorageClassLister
	csiNodes    storagelisters.CSINodeLister
	drivers     storagelisters.CSIDriverLister
	attachments storagelisters.VolumeAttachmentLister
	note        func(text string)
}

// watchVolumes enqueues claims that may have to be bound.
func (a *Actors) watchVolumes(ctx context.Context, note func(text string)) ([]cache.InformerSynced, error) {
	factory := informers.NewSharedInformerFactory(a.kube, 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	a.vols = &volumes{
		kube: a.kube, claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(),
		nodes:   core.Nodes().Lister(),
		classes: storage.StorageClasses().Lister(), csiNodes: storage.CSINodes().Lister(),
		drivers: storage.CSIDrivers().Lister(), attachments: storage.VolumeAttachments().Lister(), note: note,
	}
	enqueueClaim := func(o any) {
		if claim, ok := o.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName == "" {
			a.queue.Add(task{what: taskClaim, namespace: claim.Namespace, name: claim.Name})
		}
	}
	enqueueClaimOf := func(o any) {
		if v, ok := o.(*corev1.PersistentVolume); ok && v.Spec.ClaimRef != nil && v.Status.Phase != corev1.VolumeBound {
			a.queue.Add(task{what: taskClaim, namespace: v.Spec.ClaimRef.Namespace, name: v.Spec.ClaimRef.Name})
		}
	}
	for informer, changed := range map[cache.SharedIndexInformer]func(any){
		core.PersistentVolumeClaims().Informer(): enqueueClaim, core.PersistentVolumes().Informer(): enqueueClaimOf,
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed,
			UpdateFunc: func(_, o any) { changed(o) }})
		if err != nil {
			return nil, fmt.Errorf("watch volumes: %w", err)
		}
	}
	ready := []cache.InformerSynced{
		core.PersistentVolumeClaims().Informer().HasSynced, core.PersistentVolumes().Informer().HasSynced,
		core.Nodes().Informer().HasSynced,
		storage.StorageClasses().Informer().HasSynced, storage.CSINodes().Informer().HasSynced,
		storage.CSIDrivers().Informer().HasSynced, storage.VolumeAttachments().Informer().HasSynced,
	}
	factory.Start(ctx.Done())
	return ready, nil
}

// reconcile binds a claim if the scheduler has decided about it.
func (v *volumes) reconcile(ctx context.Context, namespace, name string) error {
	claim, err := v.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || claim.Spec.VolumeName != "" {
		return err
	}
	reserved, err := v.reserved(claim)
	if err != nil {
		return err
	}
	if reserved == nil {
		node := claim.Annotations[volume.AnnSelectedNode]
		if node == "" {
			return nil
		}
		if reserved, err = v.provision(ctx, claim, node); isRefusal(err) {
			return v.giveBack(ctx, claim, err)
		}
		if err != nil {
			return err
		}
	}
	return v.bind(ctx, claim, reserved)
}

// reserved returns the volume that is reserved for a claim, nil if there is none.
func (v *volumes) reserved(claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	all, err := v.volumes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, pv := range all {
		ref := pv.Spec.ClaimRef
		if ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name &&
			(ref.UID == "" || ref.UID == claim.UID) {
			return pv, nil
		}
	}
	return nil, nil
}

// provision creates a claim's volume for a node.
func (v *volumes) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim,
	nodeName string) (*corev1.PersistentVolume, error) {
	p := provisioning{claim: claim}
	var err error
	if p.class, err = v.classes.Get(volume.GetPersistentVolumeClaimClass(claim)); err != nil {
		return nil, err
	}
	if p.node, err = v.nodes.Get(nodeName); err != nil {
		return nil, err
	}
	if p.csiNode, err = v.csiNodes.Get(nodeName); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	_, err = v.drivers.Get(p.class.Provisioner)
	p.isDriver = err == nil
	all, err := v.volumes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	p.sample = sampleOf(p.class, all)
	pv, assumed, err := p.volume()
	if err != nil {
		return nil, err
	}
	created, err := v.kube.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return v.kube.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
	}
	if err == nil && assumed {
		v.note(fmt.Sprintf("nothing in the snapshot shows which nodes reach the volumes of StorageClass %s (provisioner %s): "+
			"a new one is reached by the node of its first pod alone, or by all nodes if the claim is for many; CSINodes or "+
			"volumes of the class would show it", p.class.Name, p.class.Provisioner))
	}
	return created, refusedByAPI(err)
}

// giveBack removes the selected node from a claim that cannot be provisioned for it, as
// provisioners do: the scheduler fails the attempt and tries the pod again.
func (v *volumes) giveBack(ctx context.Context, claim *corev1.PersistentVolumeClaim, cause error) error {
	v.note(fmt.Sprintf("the claim %s/%s cannot be provisioned: %v", claim.Namespace, claim.Name, cause))
	claim = claim.DeepCopy()
	delete(claim.Annotations, volume.AnnSelectedNode)
	_, err := v.kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
	return err
}

// bind binds a claim and a volume, the volume first (pkg/controller/volume/persistentvolume,
// pv_controller.go, bind).
func (v *volumes) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	pv = pv.DeepCopy()
	pv.Spec.ClaimRef.UID = claim.UID
	pv, err := v.kube.CoreV1().PersistentVolumes().Update(ctx, pv, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	pv.Status.Phase = corev1.VolumeBound
	if _, err := v.kube.CoreV1().PersistentVolumes().UpdateStatus(ctx, pv, metav1.UpdateOptions{}); err != nil {
		return err
	}
	claim = claim.DeepCopy()
	claim.Spec.VolumeName = pv.Name
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBoundByController, "yes")
	if claim, err = v.kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim,
		metav1.UpdateOptions{}); err != nil {
		return err
	}
	claim.Status.Phase, claim.Status.AccessModes, claim.Status.Capacity = corev1.ClaimBound, pv.Spec.AccessModes,
		pv.Spec.Capacity
	_, err = v.kube.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}
