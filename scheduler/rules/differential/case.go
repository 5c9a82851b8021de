package main

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Case is a cluster and a Pod that waits in it.
type Case struct {
	// Seed is the name of the case.
	Seed uint64 `json:"seed"`
	// Config is a KubeSchedulerConfiguration; null for the default one.
	Config       json.RawMessage                `json:"config"`
	Nodes        []v1.Node                      `json:"nodes"`
	Pods         []v1.Pod                       `json:"pods"`
	Namespaces   []v1.Namespace                 `json:"namespaces"`
	Budgets      []policyv1.PodDisruptionBudget `json:"budgets"`
	Services     []v1.Service                   `json:"services"`
	ReplicaSets  []appsv1.ReplicaSet            `json:"replicaSets"`
	StatefulSets []appsv1.StatefulSet           `json:"statefulSets"`
	// What stands behind the volumes of Pods.
	Volumes     []v1.PersistentVolume          `json:"volumes"`
	Claims      []v1.PersistentVolumeClaim     `json:"claims"`
	Classes     []storagev1.StorageClass       `json:"classes"`
	CSINodes    []storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers  []storagev1.CSIDriver          `json:"csiDrivers"`
	Capacities  []storagev1.CSIStorageCapacity `json:"capacities"`
	Attachments []storagev1.VolumeAttachment   `json:"attachments"`
	// Nominated are Pods that wait behind a gate, with a Node promised to them.
	Nominated []v1.Pod `json:"nominated"`
	// Pod is the one to schedule.
	Pod v1.Pod `json:"pod"`
}

// Result is what kube-scheduler did with the Pod: it bound it, or it wrote why not.
type Result struct {
	Seed uint64 `json:"seed"`
	// Error says why there is no answer.
	Error string `json:"error"`
	// Node is where the Pod was bound.
	Node string `json:"node"`
	// Reason and Message of the condition PodScheduled, when it is False.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Totals are the final scores by Node.
	Totals map[string]int64 `json:"totals"`
	// Plugins are the weighted scores by Node and plugin.
	Plugins map[string]map[string]int64 `json:"plugins"`
	// Nominated is the Node promised to the Pod after the attempt.
	Nominated string `json:"nominated"`
	// Suggested is the Node that was chosen, whether the Pod was bound to it or not.
	Suggested string `json:"suggested"`
	// Taken are the PersistentVolumes that were given to claims, as "namespace/claim size".
	Taken []string `json:"taken"`
	// Provisioned are the claims for which a Node was selected, as "namespace/claim node".
	Provisioned []string `json:"provisioned"`
	// Victims are the Pods that were deleted to make room, as namespace/name.
	Victims []string `json:"victims"`
}

// objects is everything that the API server would hold.
func (c *Case) objects() []runtime.Object {
	objects := []runtime.Object{&c.Pod}
	objects = appendAll[v1.Node](objects, c.Nodes)
	objects = appendAll[v1.Pod](objects, c.Pods)
	objects = appendAll[v1.Pod](objects, c.Nominated)
	objects = appendAll[v1.Namespace](objects, c.Namespaces)
	objects = appendAll[policyv1.PodDisruptionBudget](objects, c.Budgets)
	objects = appendAll[v1.Service](objects, c.Services)
	objects = appendAll[appsv1.ReplicaSet](objects, c.ReplicaSets)
	objects = appendAll[appsv1.StatefulSet](objects, c.StatefulSets)
	objects = appendAll[v1.PersistentVolume](objects, c.Volumes)
	objects = appendAll[v1.PersistentVolumeClaim](objects, c.Claims)
	objects = appendAll[storagev1.StorageClass](objects, c.Classes)
	objects = appendAll[storagev1.CSINode](objects, c.CSINodes)
	objects = appendAll[storagev1.CSIDriver](objects, c.CSIDrivers)
	objects = appendAll[storagev1.CSIStorageCapacity](objects, c.Capacities)
	return appendAll[storagev1.VolumeAttachment](objects, c.Attachments)
}

func appendAll[T any, P interface {
	*T
	runtime.Object
}](objects []runtime.Object, more []T) []runtime.Object {
	for i := range more {
		objects = append(objects, P(&more[i]))
	}
	return objects
}
