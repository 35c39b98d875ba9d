package linux

import (
	"testing"
	"testing/synctest"
	"time"
)

// What hangs of one container takes no slot of another's, and of many not more than all.
func TestSoonB154(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, hang := &Slots{All: 5, Own: 2}, make(chan struct{})
		soon := func(whose string, hangs bool) bool {
			_, ok := Soon(slots, whose, time.Second, func() int {
				if hangs {
					<-hang
				}
				return 1
			})
			return ok
		}
		for range 100 {
			if soon("greedy", true) {
				t.Fatal("what hangs is found")
			}
		}
		if soon("greedy", false) {
			t.Error("it has more than its own")
		}
		for range 2 {
			if !soon("calm", false) {
				t.Fatal("another has none")
			}
			synctest.Wait()
		}
		soon("a", true)
		soon("b", true)
		soon("c", true)
		if soon("calm", false) {
			t.Error("there are more than all")
		}
		close(hang)
		synctest.Wait()
		if !soon("greedy", false) || !soon("calm", false) {
			t.Error("what hung no more keeps its slot")
		}
		synctest.Wait()
		if slots.all != 0 || len(slots.own) != 0 {
			t.Errorf("left in the books: %d, %v", slots.all, slots.own)
		}
	})
}
