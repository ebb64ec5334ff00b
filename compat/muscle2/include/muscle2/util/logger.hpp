#include "../logger.hpp"
