package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

const (
	// An attempt takes some 50 ms.
	caseTimeMax = 20 * time.Second
	pollEvery   = time.Millisecond
)

// apiServer is a pretended one. It keeps what the scheduler asked of it.
type apiServer struct {
	*fake.Clientset
	mu      sync.Mutex
	boundTo string
	victims []string
	// The Node that was chosen, and what was written for the claims of the Pod.
	suggested   string
	taken       []string
	provisioned []string
}

func newAPIServer(c *Case) *apiServer {
	api := &apiServer{Clientset: fake.NewClientset(c.objects()...), victims: []string{}}
	api.PrependReactor("create", "pods", api.bind)
	api.PrependReactor("delete", "pods", api.delete)
	api.PrependReactor("update", "persistentvolumes", api.take)
	api.PrependReactor("update", "persistentvolumeclaims", api.provision)
	return api
}

func (a *apiServer) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	create, isCreate := action.(clienttesting.CreateAction)
	if !isCreate || action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding, isBinding := create.GetObject().(*v1.Binding)
	if !isBinding {
		return false, nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.boundTo = binding.Target.Name
	return true, binding, nil
}

// delete notes the victim and leaves it in place: the attempt is over, and must not be repeated.
func (a *apiServer) delete(action clienttesting.Action) (bool, runtime.Object, error) {
	deletion, isDeletion := action.(clienttesting.DeleteAction)
	if !isDeletion {
		return false, nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.victims = append(a.victims, deletion.GetNamespace()+"/"+deletion.GetName())
	return true, nil, nil
}

// take notes for which claim a PersistentVolume was taken, by its size: names are left to chance among equals.
func (a *apiServer) take(action clienttesting.Action) (bool, runtime.Object, error) {
	update, isUpdate := action.(clienttesting.UpdateAction)
	if !isUpdate {
		return false, nil, nil
	}
	volume, isVolume := update.GetObject().(*v1.PersistentVolume)
	if !isVolume || volume.Spec.ClaimRef == nil {
		return false, nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	claim, size := volume.Spec.ClaimRef, volume.Spec.Capacity[v1.ResourceStorage]
	a.taken = append(a.taken, fmt.Sprintf("%s/%s %d", claim.Namespace, claim.Name, size.Value()))
	return false, nil, nil
}

// provision notes which Node was selected for a claim.
func (a *apiServer) provision(action clienttesting.Action) (bool, runtime.Object, error) {
	update, isUpdate := action.(clienttesting.UpdateAction)
	if !isUpdate {
		return false, nil, nil
	}
	claim, isClaim := update.GetObject().(*v1.PersistentVolumeClaim)
	if !isClaim {
		return false, nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	node := claim.Annotations["volume.kubernetes.io/selected-node"]
	a.provisioned = append(a.provisioned, fmt.Sprintf("%s/%s %s", claim.Namespace, claim.Name, node))
	return false, nil, nil
}

func (a *apiServer) bound() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.boundTo
}

// schedule lets kube-scheduler make one attempt and returns how it ended.
func schedule(c *Case) (*Result, error) {
	scores := newScoreLog()
	ctx, cancel := context.WithTimeout(context.Background(), caseTimeMax)
	defer cancel()
	ctx = klog.NewContext(ctx, logr.New(scores))
	api := newAPIServer(c)
	sched, err := start(ctx, c, api)
	if err != nil {
		return nil, err
	}
	defer sched.SchedulingQueue.Close()
	if err := awaitQueued(ctx, sched, &c.Pod); err != nil {
		return nil, err
	}
	noteSuggested(sched, api)
	sched.ScheduleOne(ctx)
	pod, err := awaitOutcome(ctx, sched, api, &c.Pod)
	if err != nil {
		return nil, err
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	scores.mu.Lock()
	defer scores.mu.Unlock()
	result := &Result{
		Node:      api.boundTo,
		Totals:    scores.totals,
		Plugins:   scores.plugins,
		Nominated: pod.Status.NominatedNodeName,
		Victims:   api.victims,

		Suggested:   api.suggested,
		Taken:       api.taken,
		Provisioned: api.provisioned,
	}
	if why := notScheduled(pod); why != nil {
		result.Reason, result.Message = why.Reason, why.Message
	}
	return result, nil
}

// noteSuggested keeps the Node that the next attempt chooses: a Pod whose claims cannot be bound is not bound to it.
func noteSuggested(sched *scheduler.Scheduler, api *apiServer) {
	choose := sched.SchedulePod
	sched.SchedulePod = func(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		result, err := choose(ctx, profile, state, pod)
		api.mu.Lock()
		defer api.mu.Unlock()
		api.suggested = result.SuggestedHost
		return result, err
	}
}

// start gives a scheduler that knows the whole cluster and has not tried anything.
func start(ctx context.Context, c *Case, api *apiServer) (*scheduler.Scheduler, error) {
	options, err := options(c)
	if err != nil {
		return nil, err
	}
	informers := scheduler.NewInformerFactory(api, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: api.EventsV1()})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	recorders := profile.NewRecorderFactory(broadcaster)
	sched, err := scheduler.New(ctx, api, informers, nil, recorders, options...)
	if err != nil {
		return nil, fmt.Errorf("the scheduler cannot be made: %w", err)
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		return nil, fmt.Errorf("the scheduler did not get to know the cluster: %w", err)
	}
	logger := klog.FromContext(ctx)
	// After a restart, a Pod behind a gate gets its nomination back only when it is next updated.
	for i := range c.Nominated {
		// kube-scheduler goes on with a Pod whose terms it cannot parse, and so does this.
		pod, _ := framework.NewPodInfo(&c.Nominated[i])
		sched.SchedulingQueue.AddNominatedPod(logger, pod, nil)
	}
	sched.SchedulingQueue.Run(logger)
	return sched, nil
}

func options(c *Case) ([]scheduler.Option, error) {
	// The plain rules look at every Node.
	every := int32(100)
	options := []scheduler.Option{scheduler.WithPercentageOfNodesToScore(&every)}
	if len(c.Config) == 0 || string(c.Config) == "null" {
		return options, nil
	}
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(c.Config, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	configuration, isConfiguration := object.(*config.KubeSchedulerConfiguration)
	if !isConfiguration {
		return nil, fmt.Errorf("the configuration is a %T", object)
	}
	return append(options, scheduler.WithProfiles(configuration.Profiles...)), nil
}

// awaitQueued returns when the next attempt will be at the Pod. The others of the case are placed
// or behind gates.
func awaitQueued(ctx context.Context, sched *scheduler.Scheduler, pod *v1.Pod) error {
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(context.Context) (bool, error) {
		for _, queued := range sched.SchedulingQueue.PodsInActiveQ() {
			if queued.Name == pod.Name {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("the Pod was never queued: %w", err)
	}
	return nil
}

// awaitOutcome returns the Pod as it is when it was bound, or its condition says why not and all victims are
// deleted. Both happen in the background after the attempt.
func awaitOutcome(ctx context.Context, sched *scheduler.Scheduler, api *apiServer, pod *v1.Pod) (*v1.Pod, error) {
	var last *v1.Pod
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = api.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		rejected := notScheduled(last) != nil && !isPreempting(ctx, sched, last)
		return rejected || api.bound() != "", nil
	})
	if err != nil {
		return nil, fmt.Errorf("the attempt had no outcome: %w", err)
	}
	return last, nil
}

// isPreempting says whether victims are still to be deleted: until then, the plugin keeps the Pod
// out of the queue.
func isPreempting(ctx context.Context, sched *scheduler.Scheduler, pod *v1.Pod) bool {
	for _, plugin := range sched.Profiles[pod.Spec.SchedulerName].PreEnqueuePlugins() {
		if plugin.Name() == names.DefaultPreemption {
			return !plugin.PreEnqueue(ctx, pod).IsSuccess()
		}
	}
	return false
}

func notScheduled(pod *v1.Pod) *v1.PodCondition {
	for i, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
