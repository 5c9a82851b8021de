package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// A Case is a cluster and the claims of a Pod that have no devices yet.
type Case struct {
	Seed    uint64                       `json:"seed"`
	Nodes   []*corev1.Node               `json:"nodes"`
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Classes []*resourceapi.DeviceClass   `json:"classes"`
	Claims  []*resourceapi.ResourceClaim `json:"claims"`
	// Claims that have devices.
	Allocated []*resourceapi.ResourceClaim `json:"allocated"`
}

// A Result is what the claims get on each Node, by its name.
type Result struct {
	Seed  uint64             `json:"seed"`
	Nodes map[string]Outcome `json:"nodes"`
}

type Outcome struct {
	// One for each claim. None: they get nothing here.
	Allocations []resourceapi.AllocationResult `json:"allocations"`
	// Why not, if that is said.
	Error string `json:"error"`
	// It is no reason not to try other Nodes.
	OnlyHere bool `json:"onlyHere"`
	TimedOut bool `json:"timedOut"`
}

// The search is exhaustive: kube-scheduler gives it 10 s.
const nodeTimeMax = 2 * time.Second

// As a kube-scheduler has them whose feature gates were left alone.
var features = structured.Features{
	AdminAccess:            true,
	ConsumableCapacity:     true,
	DeviceBindingAndStatus: true,
	DeviceTaints:           true,
	PartitionableDevices:   true,
	PrioritizedList:        true,
}

// More than there are in all cases together.
const expressionsMax = 256

var expressions = cel.NewCache(expressionsMax, cel.Features{EnableConsumableCapacity: true})

type classes []*resourceapi.DeviceClass

func (all classes) List() ([]*resourceapi.DeviceClass, error) {
	return all, nil
}

func (all classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range all {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
}

func answer(one *Case) *Result {
	result := &Result{Seed: one.Seed, Nodes: make(map[string]Outcome, len(one.Nodes))}
	for _, node := range one.Nodes {
		result.Nodes[node.Name] = onNode(one, node)
	}
	return result
}

// onNode makes a new allocator for each Node: one that is used again remembers which counters were
// left in a pool as the Node before saw it.
func onNode(one *Case, node *corev1.Node) Outcome {
	ctx, cancel := context.WithTimeout(context.Background(), nodeTimeMax)
	defer cancel()
	allocator, err := structured.NewAllocator(ctx, features, taken(one.Allocated), classes(one.Classes), one.Slices, expressions)
	if err != nil {
		return Outcome{Error: fmt.Sprintf("no allocator: %v", err)}
	}
	allocations, err := allocator.Allocate(ctx, node, one.Claims)
	if err != nil {
		return Outcome{
			Error:    err.Error(),
			OnlyHere: errors.Is(err, structured.ErrFailedAllocationOnNode),
			TimedOut: errors.Is(err, context.DeadlineExceeded),
		}
	}
	for _, allocation := range allocations {
		for i := range allocation.Devices.Results {
			if device := &allocation.Devices.Results[i]; device.ShareID != nil {
				// It is chance.
				device.ShareID = ptr.To(types.UID(""))
			}
		}
	}
	return Outcome{Allocations: allocations}
}

// taken counts what claims have as kube-scheduler does: what has admin access is not counted, what has
// a share ID is a share.
func taken(claims []*resourceapi.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		for _, device := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(device.Driver, device.Pool, device.Device)
			switch {
			case ptr.Deref(device.AdminAccess, false):
			case device.ShareID == nil:
				state.AllocatedDevices.Insert(id)
			default:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, device.ShareID))
				if device.ConsumedCapacity != nil {
					consumed := structured.NewDeviceConsumedCapacity(id, device.ConsumedCapacity)
					state.AggregatedCapacity.Insert(consumed)
				}
			}
		}
	}
	return state
}
