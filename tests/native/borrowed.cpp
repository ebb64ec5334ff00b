// An interrupt callback of a borrowed instance. The owner of the instance may call the callback after the borrowed
// instance is gone here. The test needs no run: the function below takes the place of the library's function.
#include "check.hpp"

static int (*ask)(void *);
static void *question;

int titin_on_interrupt(titin_instance *, int (*interrupted)(void *), void *data) {
    ask = interrupted;
    question = data;
    return TITIN_OK;
}

int main() {
    return guarded([] {
        auto kept = std::make_shared<int>(1);
        const std::weak_ptr<int> alive = kept;
        {
            titin::Instance instance = titin::Instance::borrow(reinterpret_cast<titin_instance *>(&ask));
            instance.on_interrupt([kept = std::move(kept)] { return *kept == 1; });
        }
        CHECK(!alive.expired());
        CHECK(ask(question) == 1);
    });
}
