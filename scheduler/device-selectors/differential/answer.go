package main

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
)

// How often each pair is evaluated, to see whether the verdict depends on the order of Go's maps.
const evaluations = 3

// Question is an expression and the devices to evaluate it for.
type Question struct {
	Expression string   `json:"expression"`
	Devices    []Device `json:"devices"`
}

// Device is what an expression sees.
type Device struct {
	Driver                   string                                 `json:"driver"`
	AllowMultipleAllocations bool                                   `json:"allowMultipleAllocations"`
	Attributes               map[string]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[string]string                      `json:"capacity"`
}

// Answer says why the expression is refused, or what it says of each device.
type Answer struct {
	Refused string `json:"refused"`
	// What the API server takes as the cost. It refuses more than a million.
	Cost     uint64    `json:"cost"`
	Verdicts []Verdict `json:"verdicts"`
}

// Verdict is what the expression says of one device.
type Verdict struct {
	Matches bool `json:"matches"`
	// Why it has none.
	Failed string `json:"failed"`
	// It was another one when it was evaluated again.
	Unstable bool `json:"unstable"`
	// The evaluation changed a Quantity of the device.
	Changed bool `json:"changed"`
}

func answer(question *Question) (found *Answer) {
	defer func() {
		// cel-go computes constants when it compiles, and panics with some.
		if problem := recover(); problem != nil {
			found = &Answer{Refused: fmt.Sprint("panic: ", problem)}
		}
	}()
	// What kube-scheduler has in its default configuration.
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	compiled := compiler.CompileCELExpression(question.Expression, cel.Options{})
	if compiled.Error != nil {
		return &Answer{Refused: compiled.Error.Error()}
	}
	found = &Answer{Cost: compiled.MaxCost}
	for _, device := range question.Devices {
		verdict := evaluate(&compiled, &device)
		for range evaluations - 1 {
			again := evaluate(&compiled, &device)
			same := again.Matches == verdict.Matches && (again.Failed == "") == (verdict.Failed == "")
			verdict.Unstable = verdict.Unstable || !same
		}
		found.Verdicts = append(found.Verdicts, verdict)
	}
	return found
}

func evaluate(compiled *cel.CompilationResult, device *Device) (verdict Verdict) {
	input, err := device.input()
	if err != nil {
		return Verdict{Failed: err.Error()}
	}
	defer func() {
		if problem := recover(); problem != nil {
			verdict = Verdict{Failed: fmt.Sprint("panic: ", problem)}
		}
	}()
	matches, _, err := compiled.DeviceMatches(context.Background(), input)
	if err != nil {
		verdict.Failed = err.Error()
	}
	verdict.Matches = matches && err == nil
	verdict.Changed = device.differs(input)
	return verdict
}

func (device *Device) input() (cel.Device, error) {
	input := cel.Device{
		Driver:                   device.Driver,
		AllowMultipleAllocations: &device.AllowMultipleAllocations,
		Attributes:               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}
	for name, attribute := range device.Attributes {
		input.Attributes[resourceapi.QualifiedName(name)] = attribute
	}
	for name, text := range device.Capacity {
		value, err := resource.ParseQuantity(text)
		if err != nil {
			return input, fmt.Errorf("capacity %s: %w", name, err)
		}
		input.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: value}
	}
	return input, nil
}

// differs finds changes of the decimals that quantities of the caller and of the evaluator share.
func (device *Device) differs(input cel.Device) bool {
	for name, capacity := range input.Capacity {
		before := resource.MustParse(device.Capacity[string(name)])
		if before.Cmp(capacity.Value) != 0 {
			return true
		}
	}
	return false
}
