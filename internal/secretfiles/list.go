package secretfiles

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"weir/internal/bpfobj"
	"weir/internal/policy"
)

// list is what one policy lists.
type list struct {
	files      []policy.SecretFile
	generation uint32
	anywhere   uint32
	names      []string
	nodes      nodes // that are in the kernel
}

// inode is a file as the kernel knows it.
type inode struct {
	device    uint32
	number    uint64
	directory bool
}

type nodes map[inode]filesSecretNode

// add puts several reasons for one inode together.
func (n nodes) add(id inode, node filesSecretNode) {
	old := n[id]
	n[id] = filesSecretNode{Self: old.Self | node.Self, Below: old.Below | node.Below, Names: old.Names | node.Names}
}

// Set puts a policy's list in force in a slot. What is new is written beside the old under another generation, and one update
// switches over.
func (f *Files) Set(slot uint32, files []policy.SecretFile) error {
	f.setting.Lock()
	defer f.setting.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	var kernel filesSecretList
	if err := f.objects.SecretLists.Lookup(slot, &kernel); err != nil {
		return fmt.Errorf("read secret files of policy %d: %w", slot, err)
	}
	if len(files) == 0 {
		return f.drop(slot)
	}
	next := &list{files: files, generation: cmp.Or(kernel.Generation+1, 1), nodes: nodes{}}
	next.names, next.anywhere = names(files)
	if err := f.settle(); err != nil { // the next look is for this list
		return err
	}
	old := f.lists[slot]
	f.lists[slot] = next
	undo := func() { delete(f.lists, slot) }
	if old == nil {
		f.unfind(slot)
	} else {
		found := f.outdate(slot, old.names)
		undo = func() { f.lists[slot] = old; found() }
	}
	err := f.begin(slot, next)
	if err != nil {
		undo()
		return errors.Join(err, f.eraseOthers(slot, kernel.Generation), f.filter())
	}
	return errors.Join(f.eraseOthers(slot, next.generation), f.filter())
}

// begin writes a new list, and switches to it last.
func (f *Files) begin(slot uint32, l *list) error {
	if err := f.look(map[uint32]*list{slot: l}, nil); err != nil {
		return err
	}
	for i, name := range l.names {
		key := filesSecretNameKey{Policy: slot, Generation: l.generation, Index: uint32(i)}
		value := nameOf(name)
		if err := f.objects.SecretNames.Put(&key, &value); err != nil {
			return fmt.Errorf("write secret name %s: %w", name, err)
		}
	}
	if err := f.apply(slot, l, f.wanted(slot)); err != nil {
		return err
	}
	kernel := filesSecretList{Generation: l.generation, Anywhere: l.anywhere}
	if err := f.objects.SecretLists.Put(slot, &kernel); err != nil {
		return fmt.Errorf("write secret files of policy %d: %w", slot, err)
	}
	return nil
}

// apply makes a list's inodes in the kernel what is wanted: the filter first, or the programs would pass new ones over.
func (f *Files) apply(slot uint32, l *list, wanted nodes) error {
	old := l.nodes
	l.nodes = nodes{}
	maps.Copy(l.nodes, old)
	maps.Copy(l.nodes, wanted)
	if err := f.filter(); err != nil {
		return err
	}
	var errs []error
	for id, node := range wanted {
		if was, ok := old[id]; ok && was == node {
			continue
		}
		if err := f.objects.SecretNodes.Put(keyOf(slot, l.generation, id), &node); err != nil {
			if errs == nil {
				errs = append(errs, fmt.Errorf("write secret file: %w", err))
			}
			delete(l.nodes, id) // for the next time
		}
	}
	for id := range old {
		if _, ok := wanted[id]; !ok {
			errs = append(errs, bpfobj.Delete(f.objects.SecretNodes, *keyOf(slot, l.generation, id)))
			delete(l.nodes, id)
		}
	}
	return errors.Join(errs...)
}

func keyOf(slot, generation uint32, id inode) *filesSecretKey {
	return &filesSecretKey{Policy: slot, Generation: generation, Inode: id.number, Device: id.device}
}

// filter writes what is listed in any policy. It is written before more is listed, and after less is.
func (f *Files) filter() error {
	next := f.adopted
	for _, l := range f.lists {
		next.On = 1
		lengths(l.files, &next.Lengths, &next.Starred)
		all, _ := names(l.files)
		for id, node := range l.nodes {
			mark(&next, id.number, node, all)
		}
	}
	if host := f.roots[0]; host != nil {
		next.RootDevice, next.RootInode = host.top.device, host.top.number
	}
	if err := f.objects.SecretFilters.Put(uint32(0), &next); err != nil {
		return fmt.Errorf("write filter of secret files: %w", err)
	}
	return nil
}

// Drop forgets the list of a slot.
func (f *Files) Drop(slot uint32) error {
	f.setting.Lock()
	defer f.setting.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drop(slot)
}

func (f *Files) drop(slot uint32) error {
	if err := f.objects.SecretLists.Put(slot, &filesSecretList{}); err != nil {
		return fmt.Errorf("drop secret files of policy %d: %w", slot, err)
	}
	delete(f.lists, slot)
	f.unfind(slot)
	return errors.Join(f.eraseOthers(slot, 0), f.filter())
}

// eraseOthers deletes what other generations have in a slot.
func (f *Files) eraseOthers(slot, generation uint32) error {
	stale, err := bpfobj.Keys(f.objects.SecretNodes, func(k filesSecretKey, _ filesSecretNode) bool { return k.Policy == slot && k.Generation != generation })
	names, err2 := bpfobj.Keys(f.objects.SecretNames, func(k filesSecretNameKey, _ filesSecretName) bool {
		return k.Policy == slot && k.Generation != generation
	})
	if len(stale)+len(names) > 0 {
		bpfobj.WaitRCU()
	}
	return errors.Join(err, err2, bpfobj.Delete(f.objects.SecretNodes, stale...), bpfobj.Delete(f.objects.SecretNames, names...))
}
